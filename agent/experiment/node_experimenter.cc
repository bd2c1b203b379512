#include "agent/experiment/node_experimenter.h"

#include <pthread.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/experiment/preparation.h"
#include "agent/procfs/cgroup/suspension.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr size_t kMostThreads = 64;
constexpr size_t kMostUpdates = 4096;        // notices, and audit entries, between two windows
constexpr size_t kMostMeasurements = 32768;  // of wire::kMaxMeasurements
// First shadows cost more than was predicted, and the first second is sampled at the full rate: what is added by then cannot be
// taken back.
constexpr double kSpendable = 0.85;
// Taking everything out and telling what was measured comes when nothing can be saved any more.
constexpr double kEndNs = 40e6, kMostAtTheEnd = 0.2;
constexpr double kLeastCorrection = 0.5;
constexpr char kStopped[] = "variants were stopped on this node: ";
constexpr char kEndedFirst[] = "the profile ended first; a longer duration learns more";

}  // namespace

NodeExperimenter::~NodeExperimenter() {
  End();
}

void NodeExperimenter::Begin(ExperimentRequest request) {
  if (thread_.joinable()) return;
  request_ = std::move(request);
  // Another agent process may have sent measurements of the same loops.
  revision_ = static_cast<uint64_t>(std::max<int64_t>(1, options_.clock->UnixNs()));
  const double ratio = request_.plan.budget.overhead_ratio;
  const double all_ns = ratio * static_cast<double>(request_.end_ns - request_.begin_ns);
  const double at_the_end = std::min(kMostAtTheEnd, kEndNs / std::max(1.0, all_ns));
  budget_ = std::make_unique<InjectionBudget>((kSpendable - at_the_end) * ratio, request_.begin_ns,
                                              request_.end_ns);
  gate_.emplace(request_.plan, options_.leases);
  charge_ = gate_->Charge();
  thread_ = std::thread([this] { Run(); });
}

void NodeExperimenter::End() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    wake_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

ExperimentUpdate NodeExperimenter::Drain() {
  MutexLock lock(&mutex_);
  if (lost_notices_ + lost_audit_ + lost_measurements_ > 0) {
    const std::string text =
        absl::StrCat("more happened between two windows than can be kept: ", lost_notices_,
                     " notices, ", lost_audit_, " entries of the audit log and ",
                     lost_measurements_, " measurements were dropped");
    update_.notices.push_back(
        {Notice::Severity::kWarning, absl::StatusCode::kDataLoss, request_.node, 0, text});
  }
  lost_notices_ = lost_audit_ = lost_measurements_ = 0;
  return std::exchange(update_, {});
}

std::optional<RuntimeAddress> NodeExperimenter::OriginalAddress(int32_t pid,
                                                                RuntimeAddress address) const {
  std::shared_ptr<RankExperiments> found;
  {
    MutexLock lock(&mutex_);
    for (const auto& bench : benches_) {
      if (bench->rank().pid == pid) found = bench;
    }
  }
  return found == nullptr ? std::nullopt : found->OriginalAddress(address);
}

std::string NodeExperimenter::EndText() const {
  if (!ended_by_.empty()) return ended_by_;
  const std::string obstacle = switch_.Obstacle();
  return obstacle.empty() ? kEndedFirst : absl::StrCat(kStopped, obstacle);
}

void NodeExperimenter::Notify(Notice::Severity severity, const absl::Status& status, int32_t pid) {
  MutexLock lock(&mutex_);
  if (update_.notices.size() >= kMostUpdates) {
    ++lost_notices_;
    return;
  }
  update_.notices.push_back(
      {severity, status.code(), request_.node, pid, std::string(status.message())});
}

void NodeExperimenter::Audit(AuditEntry entry, const RankInfo& rank) {
  entry.profile_id = request_.plan.profile_id;
  entry.origin.requester = request_.requester;
  entry.node = request_.node;
  entry.pid = rank.pid;
  if (entry.unix_ns == 0) entry.unix_ns = options_.clock->UnixNs();
  const std::string place = entry.loop_id.empty() ? ""
                                                  : absl::StrCat(" loop ", entry.loop_id, " at 0x",
                                                                 absl::Hex(entry.address));
  LogInfo("audit: {} pid {}{}: {}", entry.action, entry.pid, place, entry.outcome);
  MutexLock lock(&mutex_);
  if (update_.audit.size() < kMostUpdates)
    update_.audit.push_back(std::move(entry));
  else
    ++lost_audit_;
}

void NodeExperimenter::Run() {
  pthread_setname_np(pthread_self(), "perfd-measure");
  ticks_per_ns_ = MeasureTicksPerNs();
  if (request_.plan.dry_run) return Rehearse();
  absl::Status may = MayMeasure();
  const auto severity = may.ok() ? Notice::Severity::kError : Notice::Severity::kWarning;
  if (may.ok() && !options_.open_injector) {
    auto tracer = Tracer::Start(options_.tracer);
    may = tracer.status();
    if (tracer.ok()) tracer_ = *std::move(tracer);
  }
  if (may.ok()) {
    Measure();
  } else {
    Notify(severity, may, 0);
    for (const RankLoops& places : request_.ranks)
      RecordUnmeasured(places, MeasureState::kRefused, may);
    Retire(MeasureState::kRefused, may);
  }
  tracer_.reset();
}

absl::Status NodeExperimenter::MayMeasure() const {
  if (const std::string obstacle = switch_.Obstacle(); !obstacle.empty())
    return absl::FailedPreconditionError(
        absl::StrCat("no loop is altered on this node: ", obstacle));
  if (ticks_per_ns_ > 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "no loop is measured: this machine's time stamp counter is not invariant");
}

void NodeExperimenter::Measure() {
  for (const RankLoops& places : request_.ranks) {
    if (!stop_ && switch_.Obstacle().empty())
      OpenRank(places);
    else
      RecordUnmeasured(places, MeasureState::kOpen, absl::CancelledError(EndText()));
  }
  SpendHeld(AllRankExperiments());
  while (!stop_ && Step()) {
  }
  const absl::Status reason = absl::CancelledError(EndText());
  LeaveWaiting(MeasureState::kOpen, reason);
  CloseAll(std::string(reason.message()));
  RestoreAll();
  Retire(MeasureState::kOpen, reason);
}

// Without a tracer there is nothing an injector could stop a rank with.
void NodeExperimenter::Rehearse() {
  const absl::Status may = MayMeasure();
  size_t seen = 0;
  for (const RankLoops& places : request_.ranks) {
    if (stop_) break;
    if (may.ok())
      OpenRank(places);
    else
      RecordUnmeasured(places, MeasureState::kRefused, may);
    ++seen;
  }
  if (seen < request_.ranks.size()) {
    Notify(Notice::Severity::kWarning,
           absl::DataLossError(absl::StrCat("the dry run ended when ", seen, " of ",
                                            request_.ranks.size(), " ranks had been looked at")),
           0);
  }
  const std::vector<RankExperiments*> benches = AllRankExperiments();
  for (size_t loop = 0; loop < request_.plan.loops.size(); ++loop) Publish(loop, benches);
  finished_ = true;
}

void NodeExperimenter::OpenRank(const RankLoops& places) {
  if (absl::Status runs = CheckNotSuspended(ProcFs(), places.rank.pid); !runs.ok()) {
    RecordUnmeasured(places, MeasureState::kOpen, runs);
    left_.push_back({&places, std::move(runs)});
    return;
  }
  const bool alters = options_.late != nullptr && !request_.plan.dry_run;
  const bool claimed = alters && options_.late->Claim(places.rank);
  InjectorOptions options;
  options.tracer = tracer_.get();
  options.journal = options_.journal;
  options.admitted = places.admission;
  options.max_stop_ns = request_.plan.budget.stop_ns;
  options.max_shadow_ns = request_.plan.budget.shadow_ns;
  options.ranks_at_once = static_cast<int32_t>(std::min(request_.ranks.size(), kMostThreads));
  options.recovery = options_.allow_recovery && request_.plan.recovery;
  options.cancelled = [this] { return stop_ || switch_.Thrown(); };
  options.answers = options_.answers;
  options.audit = [this, rank = places.rank](AuditEntry entry) { Audit(std::move(entry), rank); };
  auto injector = options_.open_injector ? options_.open_injector(places.rank, options)
                                         : RankInjector::Open(places.rank, options);
  if (!injector.ok()) {
    if (claimed) options_.late->HealLater(places.rank);
    RecordUnmeasured(places, MeasureState::kRefused, injector.status());
    left_.push_back({&places, injector.status()});
    if (request_.plan.dry_run) return;  // the refusal is the answer
    Notify(Notice::Severity::kWarning,
           absl::Status(injector.status().code(),
                        absl::StrCat("rank ", places.rank.rank, " (pid ", places.rank.pid,
                                     ") is not injected into: ", injector.status().message())),
           places.rank.pid);
    return;
  }
  auto bench = std::make_shared<RankExperiments>(places, *std::move(injector));
  bench->Install(places, request_, ticks_per_ns_);
  MutexLock lock(&mutex_);
  benches_.push_back(std::move(bench));
}

// A rank without an injector: its loops stay as they are, and say why.
void NodeExperimenter::RecordUnmeasured(const RankLoops& places, MeasureState state,
                                        const absl::Status& why) {
  for (const LoopSite& place : places.loops) {
    LoopMeasurement measurement;
    measurement.profile_id = request_.plan.profile_id;
    measurement.node = request_.node;
    measurement.pid = places.rank.pid;
    measurement.rank = places.rank.rank;
    measurement.loop_id = place.target.loop_id;
    measurement.location_key = place.target.location_key;
    measurement.revision = ++revision_;
    measurement.state = state;
    measurement.reason = std::string(why.message());
    if (state == MeasureState::kOpen) measurement.open = request_.plan.variants;
    MutexLock lock(&mutex_);
    if (update_.measurements.size() < kMostMeasurements)
      update_.measurements.push_back(std::move(measurement));
    else
      ++lost_measurements_;
  }
}

std::vector<RankExperiments*> NodeExperimenter::AllRankExperiments() const {
  std::vector<RankExperiments*> benches;
  MutexLock lock(&mutex_);
  for (const auto& bench : benches_) benches.push_back(bench.get());
  return benches;
}

// How far the least advanced rank is on this loop; kDone and 0: nothing is left to do.
std::pair<Stage, int> NodeExperimenter::Advanced(size_t loop) const {
  std::pair<Stage, int> least{Stage::kDone, 0};
  for (const RankExperiments* bench : AllRankExperiments()) {
    if (bench->given_up(loop) || bench->stage(loop) == Stage::kDone) continue;
    least = std::min(least, std::pair(bench->stage(loop), bench->steps(loop)));
  }
  return least;
}

// The least advanced loop; of those the one with the fewest steps; of those the cheapest for its weight, so that a budget that
// is too small for all buys what tells most.
size_t NodeExperimenter::NextLoop() const {
  size_t best = request_.plan.loops.size();
  std::tuple<Stage, int, double> least{Stage::kDone, 0, 0};
  for (size_t loop = 0; loop < request_.plan.loops.size(); ++loop) {
    const auto [stage, steps] = Advanced(loop);
    if (const auto next = std::tuple(stage, steps, Price(loop)); next < least)
      least = next, best = loop;
  }
  return best;
}

// The ranks that are least advanced on this loop step together.
std::vector<RankExperiments*> NodeExperimenter::Waiting(size_t loop) const {
  std::vector<RankExperiments*> waiting;
  auto least = Stage::kDone;
  for (const RankExperiments* bench : AllRankExperiments())
    least = std::min(least, bench->stage(loop));
  for (RankExperiments* bench : AllRankExperiments()) {
    if (bench->stage(loop) == least && waiting.size() < kMostThreads) waiting.push_back(bench);
  }
  return waiting;
}

bool NodeExperimenter::Step() {
  if (options_.clock->MonotonicNs() + kReserveNs >= request_.end_ns) return false;
  if (const std::string obstacle = switch_.Obstacle(); !obstacle.empty()) {
    ended_by_ = absl::StrCat(kStopped, obstacle);  // it may be gone by the time it is told
    Notify(Notice::Severity::kWarning, absl::CancelledError(ended_by_), 0);
    return false;
  }
  LeaveChanged();
  OpenResumed();
  TakeUpOrder();
  if (gate_->active()) return StepLeased();
  const size_t loop = NextLoop();
  if (loop >= request_.plan.loops.size()) return AwaitOrder();
  const std::vector<RankExperiments*> benches = Waiting(loop);
  const int64_t cost = CostOf(loop, benches, &RankExperiments::LeastCost);
  if (cost > 0 && AwaitInstall()) return true;
  const int64_t round = CostOf(loop, benches, &RankExperiments::RoundCost);
  const bool paid = cost == 0 || AwaitCredit(round, &InjectionBudget::LikelyWaitNs) ||
                    AwaitCredit(cost, &InjectionBudget::WaitNs);
  if (!paid) {
    CloseUnaffordable(loop, benches, cost);
  } else if (!stop_ && switch_.Obstacle().empty() && !OrderIsDue()) {
    StepRanks(loop, benches, nullptr);
  }
  Publish(loop, benches);
  return true;
}

// False: not within this profile.
bool NodeExperimenter::AwaitCredit(int64_t cost_ns,
                                   int64_t (InjectionBudget::*wait_ns)(int64_t, int64_t) const) {
  while (!stop_ && switch_.Obstacle().empty() && !OrderIsDue()) {
    LeaveChanged();
    budget_->Charge(charged_ns_.exchange(0), options_.clock->MonotonicNs());
    const int64_t now = options_.clock->MonotonicNs();
    const int64_t wait = (*budget_.*wait_ns)(cost_ns, now);
    if (wait == 0) return true;
    if (wait < 0 || now + wait + kReserveNs >= request_.end_ns) return false;
    Nap(wait);
  }
  return true;
}

void NodeExperimenter::StepRanks(size_t loop, const std::vector<RankExperiments*>& benches,
                                 const LeaseSlot* slot) {
  const int64_t now = options_.clock->MonotonicNs();
  const int64_t left = request_.end_ns - kReserveNs - now;
  // In predicted time: steps are planned by that. Cheap steps so far do not make one of all the credit.
  const double credit = static_cast<double>(budget_->CreditNs(now)) /
                        std::max(kLeastCorrection, correction_.factor());
  std::vector<StepRoom> rooms;
  for (RankExperiments* bench : benches) {
    const double charge = ChargeOf(loop, *bench);
    rooms.push_back(bench->Prepare(loop, static_cast<int64_t>(credit / charge), left));
    if (slot != nullptr) KeepWithin(*slot, bench->EntryNs(loop), rooms.back());
  }
  std::vector<StepCost> costs(benches.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < benches.size(); ++i)
    threads.emplace_back([&, i] { costs[i] = benches[i]->Step(loop, rooms[i]); });
  for (std::thread& thread : threads) thread.join();
  for (RankExperiments* bench : benches) bench->Settle(loop);
  SpendHeld(benches);
  int64_t predicted = 0;
  for (const StepCost& cost : costs) predicted = std::max(predicted, cost.predicted_ns);
  const int64_t measured = AddedWallNs(costs);
  if (slot == nullptr)
    budget_->Spend(measured);
  else
    SpendLeased(costs, *slot);
  correction_.Learn(predicted, measured);
}

// Ranks are stopped one after the other, and a job waits for each of them, on each of its nodes.
void NodeExperimenter::SpendHeld(const std::vector<RankExperiments*>& benches) {
  int64_t held = 0;
  for (RankExperiments* bench : benches) held += bench->DrainHeldNs();
  budget_->Spend(static_cast<int64_t>(gate_->OutsideCharge() * static_cast<double>(held)));
}

void NodeExperimenter::Publish(size_t loop, const std::vector<RankExperiments*>& benches) {
  const int64_t now = options_.clock->MonotonicNs();
  ChooseLister(loop);
  for (RankExperiments* bench : benches) {
    LoopMeasurement measurement = bench->Measurement(loop, ++revision_, now);
    const InjectionCost stops = bench->DrainStops();
    MutexLock lock(&mutex_);
    update_.stops += stops.stops;
    update_.stop_ns += static_cast<uint64_t>(stops.stop_ns);
    std::vector<LoopMeasurement>& all = update_.measurements;
    std::erase_if(all, [&](const LoopMeasurement& old) {
      return old.pid == measurement.pid && old.loop_id == measurement.loop_id;
    });
    if (all.size() < kMostMeasurements)
      all.push_back(std::move(measurement));
    else
      ++lost_measurements_;
  }
}

}  // namespace perfd::agent
