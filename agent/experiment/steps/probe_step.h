// agent/experiment/steps/probe_step.h - what a loop's first shadow tells: whether it can run in one at all, how long an instance
// is, what it reads and writes.
//
// Threads  thread-compatible.
#ifndef AGENT_EXPERIMENT_STEPS_PROBE_STEP_H_
#define AGENT_EXPERIMENT_STEPS_PROBE_STEP_H_

#include <vector>

#include "agent/experiment/loop/phase.h"

namespace perfd::agent {

std::vector<RunSpec> ProbeRuns(const LoopKnowledge& known);
StepOutcome LearnProbe(LoopKnowledge& known, const ShadowAnswer& answer,
                       const std::vector<RunSpec>& runs);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_STEPS_PROBE_STEP_H_
