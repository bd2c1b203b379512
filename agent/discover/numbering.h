// agent/discover/numbering.h - from the processes that match to the ranks that are measured. Pure.
//
// Shape    RetainPrograms drops launchers, and the shells and wrappers around a rank's program.
//          NumberRanks turns what is left into ranks, sorted by rank, then pid.
// Rules    Several programs with one rank number (an application and the helpers it forked) are all kept: the rank's
//          time is the sum. Processes without a rank number get consecutive ones after the largest MPI rank, in pid
//          order; who has got one keeps it, and it is never given again, unless `reuse` says so.
#ifndef AGENT_DISCOVER_NUMBERING_H_
#define AGENT_DISCOVER_NUMBERING_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agent/discover/candidate.h"
#include "core/model/identity.h"

namespace perfd::agent {

std::vector<Candidate> RetainPrograms(std::vector<Candidate> candidates);
// Also where they are all there is.
void DropWrappers(std::vector<Candidate>* candidates);

// Numbers given to processes that have none of their own, from scan to scan.
struct GivenNumbers {
  std::map<std::pair<int32_t, uint64_t>, int32_t>
      by_process;  // pid, start ticks; the caller takes out those that have ended
  int32_t first_free = 0;
  bool reuse = false;  // the smallest from first_free on that nobody has; else every one only once
};

std::vector<RankInfo> NumberRanks(const std::vector<Candidate>& candidates, const std::string& node,
                                  GivenNumbers* given);

}  // namespace perfd::agent

#endif  // AGENT_DISCOVER_NUMBERING_H_
