// agent/experiment/loop/succession.h - runs of a batch that go on from each other, instead of repeating the same instances.
//
// Shape    what is repeated meets caches that hold its data, and predictors that know its branches; the next instances meet what the
//          program has left there. One shadow runs REF both ways, and what is nearer to live is kept.
// Threads  thread-safe (pure).
// Source   docs/adr/0039-successive-instances.md.
#ifndef AGENT_EXPERIMENT_LOOP_SUCCESSION_H_
#define AGENT_EXPERIMENT_LOOP_SUCCESSION_H_

#include <vector>

#include "agent/experiment/loop/knowledge.h"

namespace perfd::agent {

// Runs before those that count: a fork leaves little of the rank in the first levels of the caches.
inline constexpr int kSuccessiveWarmUps = 12;

bool NeedsSuccession(const LoopKnowledge& known);
// The traced runs that successive ones begin with.
std::vector<RunSpec> LookingAhead();
// REF as it is repeated now, then going on.
std::vector<RunSpec> SuccessionRuns(const LoopKnowledge& known);
void LearnSuccession(LoopKnowledge& known, const ShadowAnswer& answer,
                     const std::vector<RunSpec>& runs);
// After a shadow of variants: where nothing that goes on counts any more, instances are repeated again.
void CheckSuccession(LoopKnowledge& known, const ShadowAnswer& answer,
                     const std::vector<RunSpec>& runs);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_LOOP_SUCCESSION_H_
