// agent/experiment/steps/succession_step.h - whether runs of a batch go on from each other, and how much instances overlap.
//
// Threads  thread-compatible.
// Source   docs/adr/0034-successive-instances.md.
#ifndef AGENT_EXPERIMENT_STEPS_SUCCESSION_STEP_H_
#define AGENT_EXPERIMENT_STEPS_SUCCESSION_STEP_H_

#include <vector>

#include "agent/experiment/loop/knowledge.h"

namespace perfd::agent {

// `runs` are SuccessionRuns. What is nearer to live is kept.
void LearnSuccession(LoopKnowledge& known, const ShadowAnswer& answer,
                     const std::vector<RunSpec>& runs);
// After a shadow of variants: where nothing that goes on counts any more, instances are repeated again.
void CheckSuccession(LoopKnowledge& known, const ShadowAnswer& answer,
                     const std::vector<RunSpec>& runs);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_STEPS_SUCCESSION_STEP_H_
