// The steps of a NodeExperimenter under a pause lease.
#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "agent/experiment/node_experimenter.h"
#include "core/analysis/injection_total.h"
#include "core/base/mutex.h"

namespace perfd::agent {
namespace {

using Stage = Stage;

constexpr int64_t kNoTurnNapNs = 50 * kNsPerMs;
constexpr size_t kMostPauses = 4096;  // until the next window takes them
// A loop may be so many steps ahead of the least advanced one: whose turn it is must not depend on every failed arm.
constexpr int kMostAhead = 1;

// Of all ranks together.
PauseSpan LongestPause(const std::vector<StepCost>& costs) {
  PauseSet pauses;
  for (const StepCost& cost : costs) {
    if (cost.pause_begin_ns != 0)
      pauses.Add(cost.pause_begin_ns, cost.pause_begin_ns + cost.pause_ns);
  }
  PauseSpan longest;
  for (const PauseSpan& span : pauses.spans()) {
    if (span.end_ns - span.begin_ns > longest.end_ns - longest.begin_ns) longest = span;
  }
  return longest;
}

int64_t Scaled(double factor, int64_t ns) {
  return static_cast<int64_t>(factor * static_cast<double>(ns));
}

}  // namespace

// What pauses nobody is done at once, the rest when its window comes.
bool NodeExperimenter::StepLeased() {
  budget_->Charge(charged_ns_.exchange(0), options_.clock->MonotonicNs());
  Recharge();
  const size_t next = NextLoop();
  if (next >= request_.plan.loops.size()) return AwaitOrder();
  if (Advanced(next).first < Stage::kProbe) {
    const std::vector<RankExperiments*> benches = Waiting(next);
    StepRanks(next, benches, nullptr);
    Publish(next, benches);
    return true;
  }
  if (AwaitInstall()) return true;
  const std::optional<LeaseTurn> turn = NextTurn();
  if (!turn.has_value()) {
    Nap(kNoTurnNapNs);
    return true;
  }
  if (turn->slot.begin_ns + kReserveNs >= request_.end_ns) return false;
  const std::vector<RankExperiments*> benches = Waiting(turn->loop);
  const int64_t cost = CostOf(turn->loop, benches, &RankExperiments::LeastCost);
  const int64_t now = options_.clock->MonotonicNs();
  const int64_t wait = budget_->WaitNs(cost, now);
  if (wait < 0 || now + wait + kReserveNs >= request_.end_ns) {
    CloseUnaffordable(turn->loop, benches, cost);
    Publish(turn->loop, benches);
  } else if (wait > 0) {
    Nap(wait);
  } else if (AwaitSlot(turn->slot)) {
    StepRanks(turn->loop, benches, &turn->slot);
    Publish(turn->loop, benches);
  }
  return true;
}

std::optional<LeaseTurn> NodeExperimenter::NextTurn() const {
  const std::pair<Stage, int> least = Advanced(NextLoop());
  const auto entry = [&](size_t loop) -> std::optional<int64_t> {
    const std::pair<Stage, int> advanced = Advanced(loop);
    if (advanced.first != least.first || advanced.second > least.second + kMostAhead)
      return std::nullopt;
    int64_t entry_ns = 0;
    for (const RankExperiments* bench : Waiting(loop))
      entry_ns = std::max(entry_ns, bench->EntryNs(loop));
    return entry_ns;
  };
  return gate_->NextTurn(options_.clock->MonotonicNs(), request_.plan.loops.size(), entry);
}

// Until it is time to get ready; the injector waits for the rest. False: something else is to be done first.
bool NodeExperimenter::AwaitSlot(const LeaseSlot& slot) {
  while (!stop_ && switch_.Obstacle().empty() && !OrderIsDue()) {
    const int64_t wait = slot.begin_ns - LeaseGate::kReadyNs - options_.clock->MonotonicNs();
    if (wait <= 0) return true;
    Nap(wait);
  }
  return false;
}

// What did not begin in its window, or is no pause (recovery mode), may add up with other nodes, as if there were no lease.
void NodeExperimenter::SpendLeased(const std::vector<StepCost>& all, const LeaseSlot& slot) {
  std::vector<StepCost> costs, slowed;  // with a pause, and without
  for (const StepCost& cost : all) (cost.pause_begin_ns != 0 ? costs : slowed).push_back(cost);
  budget_->Spend(Scaled(gate_->OutsideCharge(), AddedWallNs(slowed)));
  const int64_t added = AddedWallNs(costs);
  const PauseSpan longest = LongestPause(costs);
  std::optional<LeasedPause> pause;
  if (longest != PauseSpan{}) pause = LeaseGate::Record(slot, longest.begin_ns, longest.end_ns);
  if (!pause.has_value()) return budget_->Spend(Scaled(gate_->OutsideCharge(), added));
  leased_ns_ += added;
  budget_->Spend(Scaled(charge_, added));
  MutexLock lock(&mutex_);
  if (update_.pauses.size() < kMostPauses)
    update_.pauses.push_back(*pause);
  else
    ++update_.pauses_dropped;
}

// How well pauses overlap is known afterwards: what was spent is charged anew.
void NodeExperimenter::Recharge() {
  const double charge = gate_->Charge();
  if (charge == charge_) return;
  budget_->Spend(Scaled(charge - charge_, leased_ns_));
  charge_ = charge;
}

}  // namespace perfd::agent
