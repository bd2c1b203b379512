#include "agent/experiment/rank_bench.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "agent/attach/memory.h"
#include "agent/experiment/preparation.h"
#include "core/base/clock.h"

namespace perfd {
namespace {

constexpr int64_t kShortestWaitNs = 500 * kNsPerMs;
constexpr int64_t kLongestWaitNs = 10 * kNsPerSecond;
constexpr double kEntriesAwaited = 100;  // for the loop to be entered by the whole team
constexpr double kPassThroughNs = 2;     // of one idle entry (docs/benchmarks.md)
constexpr double kMostPassThrough =
    0.002;  // of wall time, all loops together; a loop above its part keeps the jump only while it is needed
constexpr int kRestoreAttempts = 5;
constexpr int kInstallAttempts = 5;
constexpr absl::Duration kInstallPause = absl::Milliseconds(300);

int64_t MonotonicNs() {
  return SystemClock().MonotonicNs();
}

double PassThroughShare(const Census& census) {
  return census.entries_per_second * kPassThroughNs * 1e-9 / std::max(1, census.team);
}

LoopSetup SetupOf(const LoopPlace& place, const RankInfo& rank, const ExperimentRequest& request) {
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
  // The code is the same in all ranks: one of them shows it.
  setup.with_listings = rank.pid == request.ranks.front().rank.pid;
  return setup;
}

// A copy like the loop itself can be made, but nobody would miss it.
void SayWhatIsIdle(const std::vector<std::string>& asked, InstalledLoop& loop) {
  for (size_t i = 0; i < std::min(loop.names.size(), loop.copies.size()); ++i) {
    const std::string name = loop.names[i].Text();
    const bool wanted = std::find(asked.begin(), asked.end(), name) != asked.end();
    if (wanted && loop.copies[i].changed.empty())
      loop.refusals.push_back({name, 0, "it changes no instruction of this loop", 1});
  }
}

}  // namespace

void RankBench::Install(const RankPlaces& places, const ExperimentRequest& request,
                        double ticks_per_ns) {
  std::vector<InstalledLoop> installed(places.loops.size());
  std::vector<int32_t> lab_loop(places.loops.size(), 0);
  std::vector<LabLoop> wanted;
  dry_run_ = request.plan.dry_run;
  const auto memory = Memory::Open(rank_.pid, rank_.start_ticks);
  for (size_t i = 0; i < places.loops.size(); ++i) {
    auto loop = memory.ok() ? PrepareLoop(places.loops[i], request.plan.variants, *memory)
                            : absl::StatusOr<LabLoop>(memory.status());
    installed[i].status = loop.status();
    if (!loop.ok()) continue;
    lab_loop[i] = static_cast<int32_t>(wanted.size());
    wanted.push_back(*std::move(loop));
  }
  if (!wanted.empty()) {
    touched_ = !dry_run_;
    const auto result = dry_run_ ? lab_->Rehearse(wanted) : TryInstall(wanted);
    for (size_t i = 0; i < installed.size(); ++i) {
      if (!installed[i].status.ok()) continue;
      const auto k = static_cast<size_t>(lab_loop[i]);
      if (!result.ok())
        installed[i].status = result.status();
      else if (k < result->size())
        installed[i] = (*result)[k];
      else
        installed[i].status = absl::InternalError("the lab has no answer for this loop");
    }
  }
  for (size_t i = 0; i < places.loops.size(); ++i) {
    if (dry_run_) SayWhatIsIdle(request.plan.variants, installed[i]);
    LoopSetup setup = SetupOf(places.loops[i], rank_, request);
    setup.lab_loop = lab_loop[i];
    setup.ticks_per_ns = ticks_per_ns;
    const bool patched = installed[i].status.ok() && !dry_run_;
    loops_.push_back({LoopExperiment(std::move(setup), std::move(installed[i])), lab_loop[i], 0,
                      patched, MonotonicNs(), 0});
  }
  if (dry_run_) Predict(request.plan.budget.shadow_ns);
}

// A shadow is planned for what its fork and the faults afterwards leave of its room (LoopExperiment::Measure).
void RankBench::Predict(int64_t shadow_ns) {
  const ShadowPrediction prediction = lab_->PredictShadow();
  may_fork_ = prediction.status;
  predicted_.fork_ns = prediction.fork_ns;
  predicted_.later_fault_ns = prediction.later_fault_ns;
  const auto room = static_cast<int64_t>(kShadowShare * static_cast<double>(shadow_ns));
  predicted_.most_run_ns =
      std::max<int64_t>(0, room - prediction.fork_ns - prediction.later_fault_ns);
}

// A busy node may not let all threads come to rest within the time of one stop: not now does not mean never.
absl::StatusOr<std::vector<InstalledLoop>> RankBench::TryInstall(
    const std::vector<LabLoop>& loops) {
  absl::StatusOr<std::vector<InstalledLoop>> result = absl::UnavailableError("not tried");
  for (int i = 0; i < kInstallAttempts; ++i) {
    if (i > 0) absl::SleepFor(kInstallPause);
    result = lab_->Install(loops);
    if (!absl::IsUnavailable(result.status()) && !absl::IsDeadlineExceeded(result.status())) break;
  }
  return result;
}

void RankBench::SetPatched(Loop& loop, bool patched) {
  if (loop.patched == patched || !lab_->SetPatched(loop.lab_loop, patched).ok()) return;
  loop.patched = patched;
  const int64_t now = MonotonicNs();
  if (patched)
    loop.since_ns = now;
  else
    loop.patched_ns += now - loop.since_ns;
}

StepRoom RankBench::Prepare(size_t loop, int64_t credit_ns) {
  SetPatched(loops_[loop], true);
  const Census& census = loops_[loop].experiment.census();
  StepRoom room;
  room.prediction = lab_->PredictShadow();
  room.credit_ns = credit_ns;
  const double entries = kEntriesAwaited * std::max(1, census.team);
  const double wait_ns = entries / std::max(1e-3, census.entries_per_second) * 1e9;
  room.timeout_ns =
      std::clamp(static_cast<int64_t>(std::min(wait_ns, 1e12)), kShortestWaitNs, kLongestWaitNs);
  return room;
}

void RankBench::Settle(size_t loop) {
  Loop& it = loops_[loop];
  ++it.steps;
  const bool over = it.experiment.stage() == LoopExperiment::Stage::kDone;
  const double most = kMostPassThrough / static_cast<double>(loops_.size());
  if (over || PassThroughShare(it.experiment.census()) > most) SetPatched(it, false);
}

int64_t RankBench::TakeHeldNs() {
  const InjectionCost cost = lab_->cost();
  const int64_t all = cost.stop_ns + cost.pass_through_ns;
  return all - std::exchange(held_ns_, all);
}

LoopMeasurement RankBench::Predicted(LoopMeasurement measurement) const {
  measurement.provenance = Provenance::kEstimated;
  if (measurement.state == MeasureState::kRefused) return measurement;
  if (may_fork_.ok()) {
    measurement.predicted = predicted_;
    return measurement;
  }
  measurement.state = MeasureState::kRefused;
  measurement.reason = std::string(may_fork_.message());
  measurement.open.clear();
  return measurement;
}

LoopMeasurement RankBench::Measurement(size_t loop, uint64_t revision, int64_t now_ns) const {
  const Loop& it = loops_[loop];
  LoopMeasurement measurement = it.experiment.Measurement(revision);
  if (dry_run_) return Predicted(std::move(measurement));
  const int64_t patched_ns = it.patched_ns + (it.patched ? now_ns - it.since_ns : 0);
  measurement.cost.pass_through_ns = static_cast<int64_t>(PassThroughShare(it.experiment.census()) *
                                                          static_cast<double>(patched_ns));
  if (loop > 0) return measurement;
  const InjectionCost stops = lab_->cost();  // the rank's: told with its first loop
  measurement.cost.stops = stops.stops;
  measurement.cost.stop_ns = stops.stop_ns;
  measurement.cost.longest_stop_ns = stops.longest_stop_ns;
  return measurement;
}

absl::Status RankBench::Restore() {
  if (!touched_) return absl::OkStatus();
  absl::Status status;
  for (int i = 0; i < kRestoreAttempts; ++i) {
    status = lab_->Uninstall();
    if (!status.ok() && !absl::IsNotFound(status)) continue;
    touched_ = false;
    for (Loop& loop : loops_) {
      if (loop.patched) loop.patched_ns += MonotonicNs() - loop.since_ns;
      loop.patched = false;
    }
    return absl::OkStatus();
  }
  return status;
}

}  // namespace perfd
