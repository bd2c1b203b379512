#include "agent/experiment/loop_experiment.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/analysis/cluster_median.h"

namespace perfd::agent {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kFirstEntryCountNs = 50 * kMs;
constexpr int64_t kLongestEntryCountNs = 3200 * kMs;
constexpr int32_t kMostFailures = 4;
constexpr uint32_t kMostShadows = 64;  // of one loop: what is not known by then will not be

constexpr int32_t kInstanceRounds =
    2;  // of one shadow then: more instances tell more than more runs

// Room for runs that count the passes of variants.
void SetAside(size_t checks, int64_t room_ns, int32_t team, ScheduleInput& request) {
  request.room_ns = room_ns - static_cast<int64_t>(checks) * kCountedRuns * request.run_ns;
  request.most = MostRuns(team) - static_cast<int32_t>(checks) - 1;  // and COUNT
}

bool Fits(const Schedule& schedule, const ScheduleInput& request) {
  return schedule.predicted_ns <= request.room_ns &&
         static_cast<int32_t>(schedule.runs.size()) <= request.most;
}

}  // namespace

LoopExperiment::LoopExperiment(LoopSetup setup, InstalledLoop installed)
    : setup_(std::move(setup)),
      installed_(std::move(installed)),
      entry_count_ns_(kFirstEntryCountNs) {
  if (installed_.status.ok()) return;
  const bool ended = absl::IsCancelled(installed_.status);
  Finish(ended ? MeasureState::kOpen : MeasureState::kRefused,
         std::string(installed_.status.message()));
}

void LoopExperiment::Finish(MeasureState state, const std::string& reason) {
  state_ = state;
  reason_ = reason;
  stage_ = Stage::kDone;
}

void LoopExperiment::Close(const std::string& reason) {
  if (absl::IsCancelled(installed_.status)) reason_ = reason;
  if (stage_ == Stage::kDone) return;
  // An entry count that found nobody is followed by a longer one; before the first nobody has looked.
  const bool watched = entry_count_ns_ > kFirstEntryCountNs;
  if (entry_count_.team == 0 && watched)
    return Finish(MeasureState::kNeverEntered, "no thread entered the loop while it was watched");
  LeaveUnfinished(MeasureState::kOpen, reason);
}

// What cannot be had any more may have been no more than further instances.
void LoopExperiment::LeaveUnfinished(MeasureState state, const std::string& reason) {
  if (stage_ == Stage::kMeasure && !runs_.empty() && Missing().empty())
    return Finish(MeasureState::kMeasured, "");
  Finish(state, reason);
}

// Unavailable: the next attempt may succeed. Cancelled: whoever did so says why. Anything else will not change.
void LoopExperiment::Fail(const absl::Status& status) {
  if (absl::IsCancelled(status)) return;
  const bool passing = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  if (passing && ++failures_ < kMostFailures) return;
  const char* gone = "the process has ended, or it runs another program now (exec): ";
  LeaveUnfinished(passing ? MeasureState::kOpen : MeasureState::kRefused,
                  absl::StrCat(absl::IsNotFound(status) ? gone : "", status.message()));
}

int32_t LoopExperiment::IndexOf(const std::string& variant) const {
  for (size_t i = 0; i < installed_.names.size(); ++i) {
    if (installed_.names[i].Text() == variant) return static_cast<int32_t>(i);
  }
  return -1;
}

int32_t LoopExperiment::BaseOf(int32_t variant) const {
  const std::string base = CopyOf(static_cast<size_t>(variant)).base.Text();
  return std::max(kRefIndex, IndexOf(base));
}

StepCost LoopExperiment::Step(RankInjector& injector, const StepRoom& room) {
  switch (stage_) {
    case Stage::kEntryCount:
      CountEntries(injector, room);
      return {};
    case Stage::kLive:
      RunLiveTiming(injector, room);
      return {};
    case Stage::kProbe: {
      const StepRoom used = Trimmed(room);
      return ForkIsTooLong(used) ? StepCost{} : Probe(injector, used);
    }
    case Stage::kMeasure: {
      if (in_situ_) return Recover(injector, room);
      const StepRoom used = Trimmed(room);
      if (ForkIsTooLong(used)) return {};
      if (instances_ > 0 && run_cycles_ <= 0) return TimeBatch(injector, used);
      if (NeedsPlacements()) return ChoosePlacements(injector, used);
      return NeedsProtocol() ? ChooseProtocol(injector, used) : Measure(injector, used);
    }
    case Stage::kDone:
      return {};
  }
  return {};
}

void LoopExperiment::Reopen() {
  if (stage_ != Stage::kDone || state_ == MeasureState::kMeasured ||
      state_ == MeasureState::kRefused || !installed_.status.ok())
    return;
  state_ = MeasureState::kOpen;
  reason_.clear();
  failures_ = 0;
  if (entry_count_.team == 0) entry_count_ns_ = kFirstEntryCountNs;
  stage_ = entry_count_.team == 0 ? Stage::kEntryCount
           : live_cycles_ == 0    ? Stage::kLive
           : in_situ_             ? Stage::kMeasure
           : trips_.empty()       ? Stage::kProbe
                                  : Stage::kMeasure;
}

void LoopExperiment::CountEntries(RankInjector& injector, const StepRoom& room) {
  const int64_t ns = std::max<int64_t>(1, std::min(entry_count_ns_, room.left_ns));
  const absl::StatusOr<EntryCount> entry_count = injector.CountEntries(setup_.loop_to_inject, ns);
  if (!entry_count.ok()) return Fail(entry_count.status());
  entry_count_ = *entry_count;
  if (entry_count_.team > 0) {
    stage_ = Stage::kLive;
    failures_ = 0;
    return;
  }
  entry_count_ns_ *= 4;
  if (entry_count_ns_ > kLongestEntryCountNs)
    Finish(MeasureState::kNeverEntered, "no thread entered the loop while it was watched");
}

StepCost LoopExperiment::RunShadow(RankInjector& injector, const StepRoom& room,
                                   std::vector<RunSpec> runs, bool restore, ShadowAnswer* answer) {
  ShadowRequest request;
  request.loop = setup_.loop_to_inject;
  request.team = entry_count_.team;
  // By number of entries, not by time: entries after long gaps must not be chosen more often.
  const uint64_t draw = room.generation > 0 ? room.generation : shadows_;
  const auto most = static_cast<uint64_t>(std::max<int64_t>(1, room.most_countdown));
  request.countdown =
      static_cast<int64_t>((draw * 7919 + 13) % most) * std::max(1, entry_count_.team);
  request.arm_from_ns = room.arm_from_ns;
  request.arm_until_ns = room.arm_until_ns;
  request.shadow_ns = setup_.shadow_ns;
  request.timeout_ns = room.timeout_ns;
  request.written_bytes = MostWritten();
  request.runs = std::move(runs);
  for (RunSpec& run : request.runs) run.instances = instances_;
  if (restore) {
    request.restores = trace_.written;
    request.writers = trace_.writers;
  }
  if (room.trim) request.footprint = footprint();
  const int64_t predicted = PredictedNs(room.prediction, request.runs.size());
  auto result = injector.RunShadow(request);
  if (absl::IsCancelled(result.status())) return {};  // nothing was armed: the next window will do
  if (!result.ok()) {
    if (absl::IsUnavailable(result.status()) || absl::IsDeadlineExceeded(result.status()))
      ++cost_.failed_arms;
    const bool passing =
        absl::IsUnavailable(result.status()) || absl::IsDeadlineExceeded(result.status());
    if (TrimFailed(result.status())) return {};
    if (passing || AcceptsBatch(std::string(result.status().message()))) Fail(result.status());
    return {};
  }
  if (result->pause_ns <= 0) {
    // Nothing was learned, and nothing says that the next one would tell more.
    Fail(absl::UnavailableError("a shadow came back without having held its team"));
    return {};
  }
  *answer = *std::move(result);
  for (ShadowRun& run : answer->runs)
    run.instances = std::clamp<uint64_t>(run.instances, 1, std::max<uint64_t>(1, instances_));
  failures_ = 0;
  ++shadows_;
  // A shadow that is ended has only its first, cold one.
  if (answer->probe_cycles > 0) probes_.push_back(answer->probe_cycles);
  probe_cycles_ = static_cast<double>(Median(probes_));
  cost_.failed_arms += static_cast<uint64_t>(answer->failed_gathers);
  const int64_t later_ns = std::max(room.prediction.later_fault_ns, answer->later_fault_ns);
  cost_.later_fault_ns += later_ns;
  ++cost_.shadows;
  cost_.pause_ns += answer->pause_ns;
  cost_.longest_pause_ns = std::max(cost_.longest_pause_ns, answer->pause_ns);
  return {.pause_begin_ns = answer->pause_begin_ns,
          .pause_ns = answer->pause_ns,
          .later_ns = later_ns,
          .predicted_ns = predicted};
}

StepCost LoopExperiment::Measure(RankInjector& injector, const StepRoom& room) {
  ScheduleInput request;
  std::vector<std::string> missing = Missing();
  const bool instances = missing.empty();
  if (instances) missing = MissingInstances();
  for (const std::string& name : missing) {
    request.variants.push_back(IndexOf(name));
    request.bases.push_back(BaseOf(request.variants.back()));
  }
  request.run_ns = RunNs();
  if (Learns()) request.learn_ns = RunNs() + 2 * RestoreNs();
  const int64_t longest = LongestNs();
  request.room_ns = std::min(longest, room.credit_ns) - FixedCost(room.prediction);
  request.rounds =
      std::max<int32_t>(1, (setup_.repetitions + static_cast<int32_t>(kLeastShadows) - 1) /
                               static_cast<int32_t>(kLeastShadows));
  if (instances) request.rounds = std::min(request.rounds, kInstanceRounds);
  request.evict = evict_;
  request.restore = trace_.in_situ;
  request.seed = shadows_ + 1;
  const int64_t room_ns = request.room_ns;
  SetAside(TripChecks(request.variants).size(), room_ns, entry_count_.team, request);
  // Rounds that do not fit lose variants, not repetitions of REF: the first ones are the most wanted.
  while (request.variants.size() > 1 && !Fits(MakeSchedule(request), request)) {
    request.variants.pop_back();
    request.bases.pop_back();
    SetAside(TripChecks(request.variants).size(), room_ns, entry_count_.team, request);
  }
  Schedule schedule = MakeSchedule(request);
  // One counted run tells how long this instance is, before a shadow whose time is over is ended.
  schedule.runs.insert(
      schedule.runs.begin() + schedule.warm_ups - 1,
      {.variant = kCountIndex, .evict = request.evict, .restore = request.restore});
  for (const int32_t check : TripChecks(request.variants))
    schedule.runs.push_back({.variant = check, .restore = request.restore});
  Place(schedule.runs);
  ShadowAnswer answer;
  const StepCost cost = RunShadow(injector, room, schedule.runs, request.restore, &answer);
  if (cost.pause_ns == 0 || stage_ == Stage::kDone) return cost;
  if (room.trim && MissedMemory(answer)) return cost;
  if (LeftEarly(answer, schedule.runs)) return cost;
  RecordRuns(answer, schedule.runs, schedule.warm_ups + 1);
  CheckTrips(answer, schedule.runs);
  Reduce();
  if (!AcceptsBatch("")) return cost;
  const bool compared = !NeedsPlacements() && !NeedsProtocol();
  const bool all = compared && Missing().empty() && MissingInstances().empty();
  if (stage_ == Stage::kMeasure && (all || shadows_ >= kMostShadows))
    Finish(MeasureState::kMeasured, "");
  return cost;
}

}  // namespace perfd::agent
