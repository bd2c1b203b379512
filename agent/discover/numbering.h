// agent/discover/numbering.h - from the processes that match to the ranks that are measured. Pure.
//
// Shape    KeepPrograms drops launchers, and the shells and wrappers around a rank's program.
//          NumberRanks turns what is left into ranks, sorted by rank, then pid.
// Rules    Several programs with one rank number (an application and the helpers it forked) are all kept: the rank's
//          time is the sum. Processes without a rank number get consecutive ones after the largest MPI rank, in pid
//          order.
#ifndef AGENT_DISCOVER_NUMBERING_H_
#define AGENT_DISCOVER_NUMBERING_H_

#include <string>
#include <vector>

#include "agent/discover/candidate.h"
#include "core/model/identity.h"

namespace perfd {

std::vector<Candidate> KeepPrograms(std::vector<Candidate> candidates);

std::vector<RankInfo> NumberRanks(const std::vector<Candidate>& candidates,
                                  const std::string& node);

}  // namespace perfd

#endif  // AGENT_DISCOVER_NUMBERING_H_
