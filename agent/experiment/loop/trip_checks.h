// agent/experiment/loop/trip_checks.h - does a variant make as many passes as the loop? What it tells of one pass is worth
// nothing otherwise.
//
// Threads  thread-safe (pure).
#ifndef AGENT_EXPERIMENT_LOOP_TRIP_CHECKS_H_
#define AGENT_EXPERIMENT_LOOP_TRIP_CHECKS_H_

#include <vector>

#include "agent/experiment/loop/knowledge.h"

namespace perfd::agent {

// One counted run of each variant that none has been counted of.
std::vector<int32_t> TripChecks(const LoopKnowledge& known, const std::vector<int32_t>& variants);
// Learns from such runs. The counted run of the loop itself is in the same shadow and began from the same state.
void CheckTrips(LoopKnowledge& known, const ShadowAnswer& answer, const std::vector<RunSpec>& runs);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_LOOP_TRIP_CHECKS_H_
