#include "agent/experiment/rank_experiments.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/attach/memory.h"
#include "agent/experiment/preparation.h"
#include "core/base/clock.h"

namespace perfd::agent {
namespace {

constexpr int64_t kShortestWaitNs = 500 * kNsPerMs;
constexpr int64_t kLongestWaitNs = 10 * kNsPerSecond;
constexpr double kEntriesAwaited = 100;  // for the loop to be entered by the whole team
// Of one idle entry: the aim. Tiny loops were seen at 0.3 to 2.8 ns, longer ones at more where their copy lies worse
// (docs/benchmarks/constants.md#kpassthroughns; injection_bench --part pass).
constexpr double kPassThroughNs = 3;
constexpr double kMostPassThrough =
    0.002;  // of wall time, all loops together; a loop above its part keeps the jump only while it is needed
constexpr int64_t kWorthTrimmingNs =
    5 * kNsPerMs;  // a fork and its faults; less is hardly made less
constexpr double kWorthTrimmingTo = 0.75;  // of what the whole one costs
constexpr int kRestoreAttempts = 5;
constexpr int kInstallAttempts = 5;
constexpr int kTakeOutAttempts = 5;  // of one jump; then it is left to the end
constexpr int64_t kUsualStopNs = 2 * kNsPerMs;
constexpr char kGivenUp[] = "it was hot no more, and its place went to other loops";
constexpr absl::Duration kInstallPause = absl::Milliseconds(300);

int64_t MonotonicNs() {
  return SystemClock().MonotonicNs();
}

double PassThroughShare(const EntryCount& entry_count) {
  return entry_count.entries_per_second * kPassThroughNs * 1e-9 / std::max(1, entry_count.team);
}

LoopSetup SetupOf(const LoopSite& place, const RankInfo& rank, const ExperimentRequest& request) {
  LoopSetup setup;
  setup.profile_id = request.plan.profile_id;
  setup.node = request.node;
  setup.rank = rank;
  setup.loop_id = place.target.loop_id;
  setup.location_key = place.target.location_key;
  setup.bias = place.bias;
  setup.asked = request.plan.variants;
  setup.repetitions = request.plan.repetitions;
  setup.shadow_ns = request.plan.budget.shadow_ns;
  setup.recovery = request.plan.recovery;
  for (size_t level = 0; level < kEvictLevels; ++level)
    setup.evict_bytes[level] = EvictBytesOfThisCpu(static_cast<Evict>(level));
  return setup;
}

// A busy node may not let all threads come to rest within the time of one stop: not now does not mean never.
absl::StatusOr<std::vector<InstalledLoop>> TryInstall(RankInjector& injector,
                                                      const std::vector<LoopToInject>& loops,
                                                      bool first, bool dry_run) {
  if (dry_run) return injector.Rehearse(loops);
  absl::StatusOr<std::vector<InstalledLoop>> result = absl::UnavailableError("not tried");
  for (int i = 0; i < kInstallAttempts; ++i) {
    if (i > 0) absl::SleepFor(kInstallPause);
    result = first ? injector.Install(loops) : injector.Add(loops);
    if (!absl::IsUnavailable(result.status()) && !absl::IsDeadlineExceeded(result.status())) break;
  }
  return result;
}

}  // namespace

void RankExperiments::Install(const RankLoops& places, const ExperimentRequest& request,
                              double ticks_per_ns) {
  dry_run_.on = request.plan.dry_run;
  Add(places.loops, request, ticks_per_ns);
  if (dry_run_.on) Predict(request.plan.budget.shadow_ns);
}

// `numbers`: of the injector; -1: it was not asked.
std::vector<InstalledLoop> RankExperiments::InstallAll(const std::vector<LoopSite>& places,
                                                       const std::vector<std::string>& variants,
                                                       std::vector<int32_t>* numbers) {
  std::vector<InstalledLoop> installed(places.size());
  numbers->assign(places.size(), -1);
  std::vector<LoopToInject> wanted;
  auto memory = Memory::Open(rank_.pid, rank_.start_ticks);
  // What is open is this address space for good: if it is the admitted one's now, all that is read of it is.
  const absl::Status same = injector_->StillAdmitted();
  if (memory.ok() && !same.ok()) memory = same;
  for (size_t i = 0; i < places.size(); ++i) {
    auto loop = memory.ok() ? PrepareLoop(places[i], variants, *memory)
                            : absl::StatusOr<LoopToInject>(memory.status());
    installed[i].status = loop.status();
    if (!loop.ok()) continue;
    (*numbers)[i] = loops_to_inject_ + static_cast<int32_t>(wanted.size());
    wanted.push_back(*std::move(loop));
  }
  if (wanted.empty()) return installed;
  if (!dry_run_.on) checked_ns_ = 0;
  const auto result = TryInstall(*injector_, wanted, loops_to_inject_ == 0, dry_run_.on);
  for (size_t i = 0; i < installed.size(); ++i) {
    if (!installed[i].status.ok()) continue;
    const auto k = static_cast<size_t>((*numbers)[i] - loops_to_inject_);
    if (!result.ok())
      installed[i].status = result.status();
    else if (k < result->size())
      installed[i] = (*result)[k];
    else
      installed[i].status = absl::InternalError("the injector has no answer for this loop");
  }
  if (result.ok()) loops_to_inject_ += static_cast<int32_t>(wanted.size());
  return installed;
}

void RankExperiments::Add(const std::vector<LoopSite>& places, const ExperimentRequest& request,
                          double ticks_per_ns) {
  const bool first = loops_to_inject_ == 0;  // its jumps are put in by the injector
  std::vector<int32_t> numbers;
  std::vector<InstalledLoop> installed = InstallAll(places, request.plan.variants, &numbers);
  const size_t known = loops_.size();
  for (size_t i = 0; i < places.size(); ++i) {
    LoopSetup setup = SetupOf(places[i], rank_, request);
    setup.loop_to_inject = numbers[i];
    setup.ticks_per_ns = ticks_per_ns;
    const bool patched = first && installed[i].status.ok() && !dry_run_.on;
    std::optional<Blocked> blocked;
    if (const auto by = injector_->BlockedBy(numbers[i])) blocked = Blocked{places[i], setup, *by};
    loops_.push_back({.experiment = LoopExperiment(std::move(setup), std::move(installed[i])),
                      .loop_to_inject = numbers[i],
                      .patched = patched,
                      .since_ns = MonotonicNs(),
                      .blocked = std::move(blocked)});
  }
  for (size_t loop = known; loop < loops_.size(); ++loop) {
    if (loops_[loop].experiment.IsRefused()) AddBlockedBy(loop);
  }
}

// The loop cannot be measured: those that were refused for the code they share with it are put in instead.
void RankExperiments::AddBlockedBy(size_t loop) {
  const int32_t number = loops_[loop].loop_to_inject;
  std::vector<size_t> blocked;
  std::vector<LoopSite> places;
  for (size_t i = 0; i < loops_.size(); ++i) {
    if (!loops_[i].blocked || loops_[i].blocked->by != number) continue;
    blocked.push_back(i);
    places.push_back(loops_[i].blocked->place);
  }
  if (blocked.empty() || dry_run_.on) return;
  SetPatched(loops_[loop], false);
  if (loops_[loop].patched || !injector_->Release(number).ok()) return;
  std::vector<int32_t> numbers;
  const std::vector<std::string> variants = loops_[blocked.front()].blocked->setup.asked;
  std::vector<InstalledLoop> installed = InstallAll(places, variants, &numbers);
  for (size_t i = 0; i < blocked.size(); ++i) {
    Loop& it = loops_[blocked[i]];
    LoopSetup setup = it.blocked->setup;
    setup.loop_to_inject = it.loop_to_inject = numbers[i];
    it.experiment = LoopExperiment(std::move(setup), std::move(installed[i]));
    if (const auto by = injector_->BlockedBy(numbers[i]))
      it.blocked->by = *by;
    else
      it.blocked.reset();
  }
}

absl::Status RankExperiments::LeaveIfChanged() {
  const bool over = std::all_of(loops_.begin(), loops_.end(), [](const Loop& loop) {
    return loop.experiment.stage() == Stage::kDone;
  });
  if (!checked_ns_.has_value()) return absl::OkStatus();
  // A look reads some ten files of /proc; the session looks as often.
  const int64_t now = MonotonicNs();
  if (now - *checked_ns_ < kNsPerSecond) return absl::OkStatus();
  checked_ns_ = now;
  const absl::Status still = injector_->StillAdmitted();
  if (!absl::IsPermissionDenied(still)) return absl::OkStatus();  // of an ended rank its loops tell
  for (size_t loop = 0; loop < loops_.size(); ++loop) Close(loop, std::string(still.message()));
  Restore().IgnoreError();  // tried again
  return over ? absl::OkStatus() : still;
}

// A shadow is planned for what its fork and the faults afterwards leave of its room (LoopExperiment::Measure).
void RankExperiments::Predict(int64_t shadow_ns) {
  const ShadowPrediction prediction = injector_->PredictShadow();
  dry_run_.may_fork = prediction.status;
  dry_run_.predicted.fork_ns = prediction.fork_ns;
  dry_run_.predicted.later_fault_ns = prediction.later_fault_ns;
  const auto room = static_cast<int64_t>(kShadowShare * static_cast<double>(shadow_ns));
  dry_run_.predicted.most_run_ns =
      std::max<int64_t>(0, room - prediction.fork_ns - prediction.later_fault_ns);
}

void RankExperiments::SetPatched(Loop& loop, bool patched) {
  if (loop.patched == patched || !injector_->SetPatched(loop.loop_to_inject, patched).ok()) return;
  loop.patched = patched;
  const int64_t now = MonotonicNs();
  if (patched)
    loop.since_ns = now;
  else
    loop.patched_ns += now - loop.since_ns;
}

void RankExperiments::GiveUp(size_t loop) {
  loops_[loop].given_up = true;
  loops_[loop].take_outs = 0;
  RemoveGivenUp();
}

void RankExperiments::RemoveGivenUp() {
  for (Loop& loop : loops_) {
    const bool over = loop.experiment.stage() == Stage::kDone;
    if ((loop.given_up || over) && loop.patched && loop.take_outs++ < kTakeOutAttempts)
      SetPatched(loop, false);
  }
}

void RankExperiments::TakeUp(size_t loop) {
  loops_[loop].given_up = false;
  loops_[loop].experiment.Reopen();
}

void RankExperiments::Close(size_t loop, const std::string& reason) {
  loops_[loop].experiment.Close(loops_[loop].given_up ? kGivenUp : reason);
}

int64_t RankExperiments::MeanStopNs() const {
  const InjectionCost cost = injector_->cost();
  return cost.stops == 0 ? kUsualStopNs : cost.stop_ns / static_cast<int64_t>(cost.stops);
}

int64_t RankExperiments::Cost(size_t loop, CostOfStep cost) {
  const ShadowPrediction whole = injector_->PredictShadow();
  return (loops_[loop].experiment.*cost)(Trimmed(loop, whole).value_or(whole));
}

std::optional<ShadowPrediction> RankExperiments::Trimmed(size_t loop,
                                                         const ShadowPrediction& whole) {
  LoopExperiment& experiment = loops_[loop].experiment;
  if (!whole.status.ok() || whole.fork_ns + whole.later_fault_ns < kWorthTrimmingNs)
    return std::nullopt;
  const std::optional<Footprint> footprint = experiment.footprint();
  if (!footprint) return std::nullopt;
  ShadowPrediction trimmed = injector_->PredictTrimmed(*footprint, experiment.shadow_team());
  if (!trimmed.status.ok()) {
    experiment.RecordTrim(trimmed.status);
    return std::nullopt;
  }
  const auto trimmed_ns = static_cast<double>(trimmed.fork_ns + trimmed.later_fault_ns);
  if (trimmed_ns > kWorthTrimmingTo * static_cast<double>(whole.fork_ns + whole.later_fault_ns))
    return std::nullopt;
  return trimmed;
}

int64_t RankExperiments::EntryNs(size_t loop) const {
  const EntryCount& entry_count = loops_[loop].experiment.entry_count();
  const double entries = std::max(1e-3, entry_count.entries_per_second);
  return static_cast<int64_t>(1e9 * std::max(1, entry_count.team) / entries);
}

StepRoom RankExperiments::Prepare(size_t loop, int64_t credit_ns, int64_t left_ns) {
  SetPatched(loops_[loop], true);
  const EntryCount& entry_count = loops_[loop].experiment.entry_count();
  StepRoom room;
  room.prediction = injector_->PredictShadow();
  room.trimmed = Trimmed(loop, room.prediction);
  room.credit_ns = credit_ns;
  const double entries = kEntriesAwaited * std::max(1, entry_count.team);
  const double wait_ns = entries / std::max(1e-3, entry_count.entries_per_second) * 1e9;
  room.timeout_ns =
      std::clamp(static_cast<int64_t>(std::min(wait_ns, 1e12)), kShortestWaitNs, kLongestWaitNs);
  room.left_ns = std::max<int64_t>(0, left_ns);
  room.timeout_ns = std::min(room.timeout_ns, room.left_ns);
  return room;
}

void RankExperiments::Settle(size_t loop) {
  Loop& it = loops_[loop];
  ++it.steps;
  const bool over = it.experiment.stage() == Stage::kDone;
  const auto active = std::count_if(loops_.begin(), loops_.end(),
                                    [](const Loop& other) { return !other.given_up; });
  const double most = kMostPassThrough / static_cast<double>(std::max<std::ptrdiff_t>(1, active));
  if (over || PassThroughShare(it.experiment.entry_count()) > most) SetPatched(it, false);
  if (over && it.experiment.IsRefused()) AddBlockedBy(loop);
}

int64_t RankExperiments::DrainHeldNs() {
  const InjectionCost cost = injector_->cost();
  const int64_t all = cost.stop_ns + cost.pass_through_ns;
  return all - std::exchange(held_ns_, all);
}

InjectionCost RankExperiments::DrainStops() {
  const InjectionCost cost = injector_->cost();
  const InjectionCost told = std::exchange(told_, cost);
  return {.stops = cost.stops - told.stops, .stop_ns = cost.stop_ns - told.stop_ns};
}

LoopMeasurement RankExperiments::Predicted(size_t loop, LoopMeasurement measurement) const {
  measurement.provenance = Provenance::kEstimated;
  if (measurement.state == MeasureState::kRefused) return measurement;
  if (dry_run_.may_fork.ok()) {
    measurement.predicted = dry_run_.predicted;
    loops_[loop].experiment.PredictMode(measurement);
    return measurement;
  }
  measurement.state = MeasureState::kRefused;
  measurement.reason = std::string(dry_run_.may_fork.message());
  measurement.open.clear();
  return measurement;
}

LoopMeasurement RankExperiments::Measurement(size_t loop, uint64_t revision, int64_t now_ns) const {
  const Loop& it = loops_[loop];
  LoopMeasurement measurement = it.experiment.Measurement(revision);
  if (dry_run_.on) return Predicted(loop, std::move(measurement));
  if (it.given_up && it.experiment.stage() != Stage::kDone) measurement.reason = kGivenUp;
  const int64_t patched_ns = it.patched_ns + (it.patched ? now_ns - it.since_ns : 0);
  measurement.cost.pass_through_ns = static_cast<int64_t>(
      PassThroughShare(it.experiment.entry_count()) * static_cast<double>(patched_ns));
  if (loop > 0) return measurement;
  const InjectionCost stops = injector_->cost();  // the rank's: told with its first loop
  measurement.cost.stops = stops.stops;
  measurement.cost.stop_ns = stops.stop_ns;
  measurement.cost.longest_stop_ns = stops.longest_stop_ns;
  measurement.cost.shadow_cpu_ns = stops.shadow_cpu_ns;
  measurement.cost.pass_through_ns +=
      stops.pass_through_ns;  // counted entries, waits for a team that did not meet
  return measurement;
}

absl::Status RankExperiments::Restore() {
  if (!checked_ns_.has_value()) return absl::OkStatus();
  absl::Status status;
  for (int i = 0; i < kRestoreAttempts; ++i) {
    status = injector_->Uninstall();
    if (!status.ok() && !absl::IsNotFound(status)) continue;
    checked_ns_.reset();
    for (Loop& loop : loops_) {
      if (loop.patched) loop.patched_ns += MonotonicNs() - loop.since_ns;
      loop.patched = false;
    }
    return absl::OkStatus();
  }
  return status;
}

}  // namespace perfd::agent
