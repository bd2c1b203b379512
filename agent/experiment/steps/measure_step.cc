#include "agent/experiment/steps/measure_step.h"

#include <algorithm>
#include <utility>

#include "agent/experiment/loop/apart.h"
#include "agent/experiment/loop/figures.h"
#include "agent/experiment/loop/price.h"
#include "agent/experiment/loop/protocol.h"
#include "agent/experiment/loop/trip_checks.h"
#include "agent/experiment/plan/run_schedule.h"
#include "agent/experiment/steps/batch_step.h"
#include "agent/experiment/steps/succession_step.h"

namespace perfd::agent {
namespace {

constexpr int32_t kInstanceRounds =
    2;  // of one shadow then: more instances tell more than more runs

// Runs that hold variants against the loop: their passes, and what they access.
struct Checks {
  std::vector<int32_t> trips;
  std::vector<RunSpec> addresses;
};

// Leaves room for them.
Checks SetAside(const LoopKnowledge& known, int64_t room_ns, ScheduleInput& input) {
  Checks checks{TripChecks(known, input.variants), AddressChecks(known, input.variants)};
  const auto trips = static_cast<int64_t>(checks.trips.size());
  const auto addresses = static_cast<int64_t>(checks.addresses.size());
  const auto ahead =
      static_cast<int64_t>(input.at == RunsAt::kNextInstances ? LookingAhead().size() : 0);
  input.room_ns =
      room_ns - (trips * kCountedRuns + (addresses + ahead) * kTracedRuns) * input.run_ns;
  const int64_t most = MostRuns(ShadowTeam(known)) - trips - addresses - ahead - 1;  // and COUNT
  input.most = static_cast<int32_t>(most);
  return checks;
}

bool Fits(const Schedule& schedule, const ScheduleInput& input) {
  return schedule.predicted_ns <= input.room_ns &&
         static_cast<int32_t>(schedule.runs.size()) <= input.most;
}

ScheduleInput InputOf(const LoopKnowledge& known) {
  ScheduleInput input;
  const bool instances = known.runs.missing.empty();
  for (const std::string& name : instances ? known.runs.missing_instances : known.runs.missing) {
    input.variants.push_back(IndexOf(known, name));
    input.bases.push_back(BaseOf(known, input.variants.back()));
  }
  input.run_ns = RunNs(known);
  if (LearnsWrites(known)) input.learn_ns = RunNs(known) + 2 * RestoreNs(known);
  const auto shadows = static_cast<int32_t>(kLeastShadows);
  input.rounds = std::max<int32_t>(1, (known.setup.repetitions + shadows - 1) / shadows);
  if (instances) input.rounds = std::min(input.rounds, kInstanceRounds);
  input.evict = known.protocol.evict;
  if (known.protocol.successive) input.at = RunsAt::kNextInstances;
  if (known.protocol.natural) {
    input.at = RunsAt::kArrivals;
    input.run_ns += PeriodNs(known);
    input.learn_ns = 0;
    input.warm_ups = kNaturalWarmUps;
  }
  if (input.at == RunsAt::kNextInstances) input.warm_ups = kSuccessiveWarmUps;
  input.restore = known.probe.trace.in_situ;
  input.seed = known.shadows.count + 1;
  return input;
}

}  // namespace

MeasureRuns ScheduleMissing(const LoopKnowledge& known, const StepRoom& room) {
  ScheduleInput input = InputOf(known);
  const int64_t room_ns =
      std::min(LongestShadowNs(known), room.credit_ns) - FixedCost(known, room.prediction);
  Checks checks = SetAside(known, room_ns, input);
  // Rounds that do not fit lose variants, not repetitions of REF: the first ones are the most wanted.
  while (input.variants.size() > 1 && !Fits(MakeSchedule(input), input)) {
    input.variants.pop_back();
    input.bases.pop_back();
    checks = SetAside(known, room_ns, input);
  }
  Schedule schedule = MakeSchedule(input);
  // One counted run tells how long this instance is, before a shadow whose time is over is ended. What a variant accesses is
  // held against the loop before it may run without a limit.
  std::vector<RunSpec> first = std::move(checks.addresses);
  first.push_back({.variant = kCountIndex, .evict = input.evict, .restore = input.restore});
  // Runs that go on from each other must follow each other.
  int32_t before = schedule.warm_ups - 1;
  if (input.at == RunsAt::kNextInstances) {
    const std::vector<RunSpec> ahead = LookingAhead();
    first.insert(first.end(), ahead.begin(), ahead.end());
    before = 0;
  }
  std::vector<RunSpec> counted;
  for (const int32_t check : checks.trips)
    counted.push_back({.variant = check, .restore = input.restore});
  // Of one instance, which natural runs leave behind.
  if (input.at == RunsAt::kArrivals) {
    before = 0;
    first.insert(first.end(), counted.begin(), counted.end());
    counted.clear();
  }
  schedule.runs.insert(schedule.runs.begin() + before, first.begin(), first.end());
  schedule.runs.insert(schedule.runs.end(), counted.begin(), counted.end());
  Place(known, schedule.runs);
  return {std::move(schedule.runs), schedule.warm_ups + static_cast<int32_t>(first.size())};
}

StepOutcome LearnRuns(LoopKnowledge& known, const ShadowAnswer& answer,
                      const MeasureRuns& scheduled) {
  if (!CheckPaths(known, answer, scheduled.runs)) return Learned();
  RecordRuns(known, answer, scheduled.runs, scheduled.skip);
  CheckSuccession(known, answer, scheduled.runs);
  if (!CheckAddresses(known, answer, scheduled.runs)) return Learned();
  CheckTrips(known, answer, scheduled.runs);
  Reduce(known);
  CheckBatch(known);
  return Learned();
}

}  // namespace perfd::agent
