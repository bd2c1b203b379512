#include "agent/experiment/loop_experiment.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/analysis/cluster_median.h"

namespace perfd {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kFirstCensusNs = 50 * kMs;
constexpr int64_t kLongestCensusNs = 3200 * kMs;
constexpr int32_t kMostFailures = 4;
constexpr uint32_t kMostShadows = 64;  // of one loop: what is not known by then will not be

constexpr int32_t kInstanceRounds =
    2;  // of one shadow then: more instances tell more than more runs

// Room for runs that count the passes of variants.
void SetAside(size_t checks, int64_t room_ns, int32_t team, ScheduleWish& wish) {
  wish.room_ns = room_ns - static_cast<int64_t>(checks) * kCountedRuns * wish.run_ns;
  wish.most = MostRuns(team) - static_cast<int32_t>(checks) - 1;  // and COUNT
}

bool Fits(const Schedule& schedule, const ScheduleWish& wish) {
  return schedule.predicted_ns <= wish.room_ns &&
         static_cast<int32_t>(schedule.runs.size()) <= wish.most;
}

}  // namespace

LoopExperiment::LoopExperiment(LoopSetup setup, InstalledLoop installed)
    : setup_(std::move(setup)), installed_(std::move(installed)), census_ns_(kFirstCensusNs) {
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
  // A census that found nobody is followed by a longer one; before the first nobody has looked.
  const bool watched = census_ns_ > kFirstCensusNs;
  if (census_.team == 0 && watched)
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

StepCost LoopExperiment::Step(RankLab& lab, const StepRoom& room) {
  switch (stage_) {
    case Stage::kCensus:
      TakeCensus(lab, room);
      return {};
    case Stage::kLive:
      TakeLive(lab, room);
      return {};
    case Stage::kLook: {
      const StepRoom used = Narrowed(room);
      return ForkIsTooLong(used) ? StepCost{} : Look(lab, used);
    }
    case Stage::kMeasure: {
      if (in_place_) return Recover(lab, room);
      const StepRoom used = Narrowed(room);
      if (ForkIsTooLong(used)) return {};
      if (instances_ > 0 && run_cycles_ <= 0) return TimeChain(lab, used);
      if (NeedsPlaces()) return ChoosePlaces(lab, used);
      return NeedsProtocol() ? ChooseProtocol(lab, used) : Measure(lab, used);
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
  if (census_.team == 0) census_ns_ = kFirstCensusNs;
  stage_ = census_.team == 0   ? Stage::kCensus
           : live_cycles_ == 0 ? Stage::kLive
           : in_place_         ? Stage::kMeasure
           : trips_.empty()    ? Stage::kLook
                               : Stage::kMeasure;
}

void LoopExperiment::TakeCensus(RankLab& lab, const StepRoom& room) {
  const int64_t ns = std::max<int64_t>(1, std::min(census_ns_, room.left_ns));
  const absl::StatusOr<Census> census = lab.TakeCensus(setup_.lab_loop, ns);
  if (!census.ok()) return Fail(census.status());
  census_ = *census;
  if (census_.team > 0) {
    stage_ = Stage::kLive;
    failures_ = 0;
    return;
  }
  census_ns_ *= 4;
  if (census_ns_ > kLongestCensusNs)
    Finish(MeasureState::kNeverEntered, "no thread entered the loop while it was watched");
}

StepCost LoopExperiment::RunShadow(RankLab& lab, const StepRoom& room, std::vector<RunWish> runs,
                                   bool restore, ShadowAnswer* answer) {
  ShadowWish wish;
  wish.loop = setup_.lab_loop;
  wish.team = census_.team;
  // By number of entries, not by time: entries after long gaps must not be chosen more often.
  const uint64_t draw = room.generation > 0 ? room.generation : shadows_;
  const auto most = static_cast<uint64_t>(std::max<int64_t>(1, room.most_countdown));
  wish.countdown = static_cast<int64_t>((draw * 7919 + 13) % most) * std::max(1, census_.team);
  wish.arm_from_ns = room.arm_from_ns;
  wish.arm_until_ns = room.arm_until_ns;
  wish.shadow_ns = setup_.shadow_ns;
  wish.timeout_ns = room.timeout_ns;
  wish.written_bytes = MostWritten();
  wish.runs = std::move(runs);
  for (RunWish& run : wish.runs) run.instances = instances_;
  if (restore) {
    wish.restores = trace_.written;
    wish.writers = trace_.writers;
  }
  if (room.narrow) wish.footprint = footprint();
  const int64_t predicted = PredictedNs(room.prediction, wish.runs.size());
  auto result = lab.RunShadow(wish);
  if (absl::IsCancelled(result.status())) return {};  // nothing was armed: the next window will do
  if (!result.ok()) {
    if (absl::IsUnavailable(result.status()) || absl::IsDeadlineExceeded(result.status()))
      ++cost_.failed_arms;
    const bool passing =
        absl::IsUnavailable(result.status()) || absl::IsDeadlineExceeded(result.status());
    if (NarrowingFailed(result.status())) return {};
    if (passing || KeepsChain(std::string(result.status().message()))) Fail(result.status());
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

StepCost LoopExperiment::Measure(RankLab& lab, const StepRoom& room) {
  ScheduleWish wish;
  std::vector<std::string> missing = Missing();
  const bool instances = missing.empty();
  if (instances) missing = MissingInstances();
  for (const std::string& name : missing) {
    wish.variants.push_back(IndexOf(name));
    wish.bases.push_back(BaseOf(wish.variants.back()));
  }
  wish.run_ns = RunNs();
  if (Learns()) wish.learn_ns = RunNs() + 2 * RestoreNs();
  const int64_t longest = LongestNs();
  wish.room_ns = std::min(longest, room.credit_ns) - FixedCost(room.prediction);
  wish.rounds =
      std::max<int32_t>(1, (setup_.repetitions + static_cast<int32_t>(kLeastShadows) - 1) /
                               static_cast<int32_t>(kLeastShadows));
  if (instances) wish.rounds = std::min(wish.rounds, kInstanceRounds);
  wish.evict = evict_;
  wish.restore = trace_.in_place;
  wish.seed = shadows_ + 1;
  const int64_t room_ns = wish.room_ns;
  SetAside(TripChecks(wish.variants).size(), room_ns, census_.team, wish);
  // Rounds that do not fit lose variants, not repetitions of REF: the first ones are the most wanted.
  while (wish.variants.size() > 1 && !Fits(MakeSchedule(wish), wish)) {
    wish.variants.pop_back();
    wish.bases.pop_back();
    SetAside(TripChecks(wish.variants).size(), room_ns, census_.team, wish);
  }
  Schedule schedule = MakeSchedule(wish);
  // One counted run tells how long this instance is, before a shadow whose time is over is ended.
  schedule.runs.insert(schedule.runs.begin() + schedule.warm_ups - 1,
                       {.variant = kCountIndex, .evict = wish.evict, .restore = wish.restore});
  for (const int32_t check : TripChecks(wish.variants))
    schedule.runs.push_back({.variant = check, .restore = wish.restore});
  Place(schedule.runs);
  ShadowAnswer answer;
  const StepCost cost = RunShadow(lab, room, schedule.runs, wish.restore, &answer);
  if (cost.pause_ns == 0 || stage_ == Stage::kDone) return cost;
  if (room.narrow && MissedMemory(answer)) return cost;
  if (LeftEarly(answer, schedule.runs)) return cost;
  Keep(answer, schedule.runs, schedule.warm_ups + 1);
  CheckTrips(answer, schedule.runs);
  Reduce();
  if (!KeepsChain("")) return cost;
  const bool compared = !NeedsPlaces() && !NeedsProtocol();
  const bool all = compared && Missing().empty() && MissingInstances().empty();
  if (stage_ == Stage::kMeasure && (all || shadows_ >= kMostShadows))
    Finish(MeasureState::kMeasured, "");
  return cost;
}

}  // namespace perfd
