// agent/experiment/plan/run_schedule.h - the order of the runs of one shadow.
//
// Shape    runs that learn what to restore, one per copy; warm-ups of REF, then rounds: every variant stands between two runs of its base, and the order of the variants differs from round
//          to round, so that neither drift nor neighbours favour one.
// Units    ns of wall time per run.
// Threads  thread-safe (pure).
// Source   design section 6, step 7 (A/B/A); Bendifallah 2015, 8.4 (repetitions); hazards of measuring, "Interval".
#ifndef AGENT_EXPERIMENT_PLAN_RUN_SCHEDULE_H_
#define AGENT_EXPERIMENT_PLAN_RUN_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "agent/shadow/rank_injector.h"

namespace perfd::agent {

inline constexpr int kWarmUps = 2;
// What a counted run is taken for, in runs: counting costs a loop of few instructions more than its passes.
inline constexpr int64_t kCountedRuns = 2;
// A traced copy leaves after so many passes: with records of some 10 ns each well below a millisecond.
inline constexpr uint64_t kTraceIterations = 20'000;
inline constexpr int64_t kTracedRuns = 8;   // what a traced run is taken for, in runs
inline constexpr int kMostScheduled = 256;  // runs of one shadow

// Which instances runs are of: the same again, each time those after the last ones, or where the program comes to the loop by itself.
enum class RunsAt : uint8_t { kPlace, kNextInstances, kArrivals };

struct ScheduleInput {
  std::vector<int32_t> variants;  // to be measured
  std::vector<int32_t> bases;     // of each of them
  int64_t run_ns = 0;             // of one run of REF, restoring included
  int64_t learn_ns =
      0;  // of one that learns what to restore; 0: whole ranges are restored before every run
  int64_t room_ns = 0;            // for all runs
  int32_t most = kMostScheduled;  // runs
  int32_t rounds = 1;             // wanted
  Evict evict = Evict::kNothing;
  bool restore = false;
  RunsAt at = RunsAt::kPlace;
  int32_t warm_ups = kWarmUps;
  uint64_t seed = 1;
};

struct Schedule {
  std::vector<RunSpec> runs;
  int32_t warm_ups = 0;  // the first runs, which do not count
  int32_t rounds = 0;
  int64_t predicted_ns = 0;
};

// At least one round, even when it does not fit: whoever asks checks predicted_ns.
Schedule MakeSchedule(const ScheduleInput& request);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_PLAN_RUN_SCHEDULE_H_
