// core/analysis/job_verdict.h - one loop over all ranks: the distribution is shown, never averaged away.
//
// Shape    JudgeLoop(measurements of one loop, its time) -> LoopVerdict: verdict of most ranks and how many agree, none where no
//          name has more than half of them; for each variant minimum, median rank and maximum; the ranks that differ, with what
//          they differ in. What some ranks have counts: with how many, and an interval that is that of another rank.
// Units    see core/model/loop_verdict.h.
// Threads  thread-safe (pure); equal inputs in any order give equal verdicts.
// Source   a rank differs when its interval excludes the median rank's value and it is further from it than the edge of
//          "much" in verdict.h: our own rule. Gain uses the slowest rank: hazards of measuring, "Interval".
#ifndef CORE_ANALYSIS_JOB_VERDICT_H_
#define CORE_ANALYSIS_JOB_VERDICT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "core/analysis/verdict.h"
#include "core/model/loop_verdict.h"

namespace perfd {

// How much of the time is in the loop and the loops inside it, from the samples.
struct LoopTime {
  double share =
      0;  // of the job's time, with its interval: elapsed time, or CPU time where that is not known
  double share_low = 0;
  double share_high = 0;
  double slowest_share = 0;  // of the time of the rank that the job waits for
  std::string slowest_node;  // that rank
  int32_t slowest_pid = 0;
  std::string slowest_rank;             // its name
  std::vector<double> rank_times = {};  // in the loop, of each rank that has any; in any unit
};

struct JudgeOptions {
  VerdictEdges edges = {};
  size_t ranks = 256;  // lines of LoopVerdict::ranks
};

// `ranks`: not empty, one loop, one measurement for each (node, pid).
LoopVerdict JudgeLoop(std::vector<const LoopMeasurement*> ranks, const LoopTime& time,
                      const JudgeOptions& options = {});

// "rank 3 on node17".
std::string RankName(const LoopMeasurement& loop);

}  // namespace perfd

#endif  // CORE_ANALYSIS_JOB_VERDICT_H_
