// agent/experiment/steps/comparing_steps.h - one shadow that runs REF in several ways; the one nearest to live is kept.
//
// Shape    within one shadow runs differ by the way only; how the first way compares with live is known from all instances so far.
// Threads  thread-compatible.
#ifndef AGENT_EXPERIMENT_STEPS_COMPARING_STEPS_H_
#define AGENT_EXPERIMENT_STEPS_COMPARING_STEPS_H_

#include <vector>

#include "agent/experiment/loop/phase.h"

namespace perfd::agent {

// A shadow runs the same instance again and again, and a branch predictor of our days knows thousands of branches in a row
// after three times: what the rank decides anew each time would cost nothing. So no run stands where one of the same copy
// stood before, as far as places go round, unless one place is nearer to live.
StepOutcome LearnPlacements(LoopKnowledge& known, const ShadowAnswer& answer,
                            const std::vector<RunSpec>& runs);
StepOutcome LearnEviction(LoopKnowledge& known, const ShadowAnswer& answer,
                          const std::vector<RunSpec>& runs);

// Where the program itself comes to the loop, against the way that has been nearest to live so far.
StepOutcome LearnNatural(LoopKnowledge& known, const ShadowAnswer& answer,
                         const std::vector<RunSpec>& runs);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_STEPS_COMPARING_STEPS_H_
