// agent/experiment/loop/price.h - what a loop's next shadow is expected to cost.
//
// Units    ns of wall time.
// Threads  thread-safe (pure).
#ifndef AGENT_EXPERIMENT_LOOP_PRICE_H_
#define AGENT_EXPERIMENT_LOOP_PRICE_H_

#include <cstdint>
#include <vector>

#include "agent/experiment/loop/phase.h"

namespace perfd::agent {

// Of one run of a round, and of the way to it.
int64_t RoundNs(const LoopKnowledge& known);
// Of a shadow without its runs: fork, the rank's faults afterwards, copies of what is written.
int64_t FixedCost(const LoopKnowledge& known, const ShadowPrediction& prediction);
// Of runs that compare protocols: each empties caches, or not, for itself.
int64_t ComparingNs(const LoopKnowledge& known, const std::vector<RunSpec>& runs);
// Of the traced runs that successive ones begin with.
int64_t LookingAheadNs(const LoopKnowledge& known);
// Of memory, that such a shadow writes at most.
uint64_t MostWritten(const LoopKnowledge& known);

// Least that the next step adds; 0: none.
int64_t LeastCost(const LoopKnowledge& known, Phase phase, const ShadowPrediction& prediction);
// Of a step that measures all that is missing, as far as one shadow can: several that measure less cost more.
int64_t RoundCost(const LoopKnowledge& known, Phase phase, const ShadowPrediction& prediction);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_LOOP_PRICE_H_
