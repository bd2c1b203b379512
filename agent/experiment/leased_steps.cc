// What the steps of a NodeExperimenter cost, and those under a pause lease.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "agent/experiment/node_experimenter.h"
#include "core/analysis/injection_total.h"

namespace perfd {
namespace {

using Stage = LoopExperiment::Stage;

constexpr int64_t kNapNs = 50 * kNsPerMs;
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

int64_t AddedWallNs(const std::vector<StepCost>& costs) {
  std::vector<std::pair<int64_t, int64_t>> pauses;
  int64_t later = 0;
  for (const StepCost& cost : costs) {
    if (cost.pause_begin_ns != 0)
      pauses.emplace_back(cost.pause_begin_ns, cost.pause_begin_ns + cost.pause_ns);
    later = std::max(later, cost.later_ns);
  }
  std::sort(pauses.begin(), pauses.end());
  int64_t paused = 0, until = 0;
  for (const auto& [begin, end] : pauses) {
    paused += std::max<int64_t>(0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return paused + later;
}

// What adds wall time without a pause (recovery mode) overlaps with nothing that other nodes could tell of.
double NodeExperimenter::ChargeOf(size_t loop, const RankBench& bench) const {
  return bench.InPlace(loop) ? gate_->OutsideCharge() : charge_;
}

// What a run of this loop costs for its weight, which falls with its place in the order as times of loops usually do (Zipf).
double NodeExperimenter::Price(size_t loop) const {
  int64_t run_ns = 0;
  for (const RankBench* bench : Benches()) run_ns = std::max(run_ns, bench->RunNs(loop));
  const std::vector<MeasureLoop>& order = newest_.empty() ? request_.plan.loops : newest_;
  const std::string& id = request_.plan.loops[loop].loop_id;
  const auto at = std::find_if(order.begin(), order.end(),
                               [&](const MeasureLoop& other) { return other.loop_id == id; });
  return static_cast<double>(run_ns) * static_cast<double>(at - order.begin() + 1);
}

// Of the next step, as it is charged; 0: nothing.
int64_t NodeExperimenter::CostOf(size_t loop, const std::vector<RankBench*>& benches,
                                 int64_t (RankBench::*each)(size_t)) const {
  int64_t cost = 0;
  for (RankBench* bench : benches) {
    const int64_t predicted = correction_.Corrected((bench->*each)(loop));
    cost = std::max(cost, Scaled(ChargeOf(loop, *bench), predicted));
  }
  return cost;
}

void NodeExperimenter::CloseUnaffordable(size_t loop, const std::vector<RankBench*>& benches,
                                         int64_t cost_ns) {
  const std::string reason = absl::StrFormat(
      "the budget (%.1f %% of the elapsed time) does not buy the next shadow: it costs %.0f ms, "
      "%.0f ms are left",
      100 * request_.plan.budget.overhead_ratio, static_cast<double>(cost_ns) / 1e6,
      static_cast<double>(budget_->TotalNs() - budget_->spent_ns()) / 1e6);
  for (RankBench* bench : benches) {
    const std::string note = bench->NarrowNote(loop);
    bench->Close(loop, note.empty() ? reason : absl::StrCat(reason, "; ", note));
    bench->Settle(loop);  // nothing will need its jump
  }
}

void NodeExperimenter::Nap(int64_t ns) const {
  const int64_t nap = std::min(ns, kNapNs);
  if (options_.sleep)
    options_.sleep(nap);
  else
    absl::SleepFor(absl::Nanoseconds(nap));
}

// What pauses nobody is done at once, the rest when its window comes.
bool NodeExperimenter::StepLeased() {
  budget_->Charge(charged_ns_.exchange(0), options_.clock->MonotonicNs());
  Recharge();
  const size_t next = NextLoop();
  if (next >= request_.plan.loops.size()) return AwaitOrder();
  if (Advanced(next).first < Stage::kLook) {
    const std::vector<RankBench*> benches = Waiting(next);
    StepRanks(next, benches, nullptr);
    Publish(next, benches);
    return true;
  }
  if (AwaitInstall()) return true;
  const std::optional<LeaseTurn> turn = NextTurn();
  if (!turn.has_value()) {
    Nap(kNapNs);
    return true;
  }
  if (turn->slot.begin_ns + kReserveNs >= request_.end_ns) return false;
  const std::vector<RankBench*> benches = Waiting(turn->loop);
  const int64_t cost = CostOf(turn->loop, benches, &RankBench::LeastCost);
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
    for (const RankBench* bench : Waiting(loop))
      entry_ns = std::max(entry_ns, bench->EntryNs(loop));
    return entry_ns;
  };
  return gate_->NextTurn(options_.clock->MonotonicNs(), request_.plan.loops.size(), entry);
}

// Until it is time to get ready; the lab waits for the rest. False: something else is to be done first.
bool NodeExperimenter::AwaitSlot(const LeaseSlot& slot) {
  while (!stop_ && !Disabled() && !OrderIsDue()) {
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
  absl::MutexLock lock(&mutex_);
  if (news_.pauses.size() < kMostPauses)
    news_.pauses.push_back(*pause);
  else
    ++news_.pauses_dropped;
}

// How well pauses overlap is known afterwards: what was spent is charged anew.
void NodeExperimenter::Recharge() {
  const double charge = gate_->Charge();
  if (charge == charge_) return;
  budget_->Spend(Scaled(charge - charge_, leased_ns_));
  charge_ = charge;
}

}  // namespace perfd
