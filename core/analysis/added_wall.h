// core/analysis/added_wall.h - what a profile added to the wall time of the job, from all its causes.
//
// Shape    AddedWallOf(report): sampling, agents, injection, their sum and its share of the time that was covered.
// Model    the threads of a rank wait for each other, so what sampling takes from them adds up; ranks and nodes are held up side
//          by side, so their mean counts, of those that live at a time: one that has ended does not thin out what the others
//          lose. Of the agent's CPU time counts what ranks can have lost by it (agent/pipeline/cost/agent_share.h).
//          Everything is estimated, on the high side for a rank of the mean, except the stops and pauses of the injection,
//          which are measured.
// Units    ns.
// Threads  thread-safe (pure).
// Source   promise P4; docs/benchmarks/constants.md#kfarfactor.
#ifndef CORE_ANALYSIS_ADDED_WALL_H_
#define CORE_ANALYSIS_ADDED_WALL_H_

#include <cstdint>

#include "core/model/report.h"

namespace perfd {

struct AddedWall {
  int64_t sampling_ns = 0;
  int64_t agents_ns = 0;
  int64_t injection_ns = 0;
  double ratio =
      0;  // of the covered time of the node that was covered longest; 0: nothing was covered

  int64_t TotalNs() const { return sampling_ns + agents_ns + injection_ns; }
};

AddedWall AddedWallOf(const Report& report);

}  // namespace perfd

#endif  // CORE_ANALYSIS_ADDED_WALL_H_
