// agent/experiment/steps/batch_step.h - instances too short to be timed one by one run in batches.
//
// Shape    repeated in a shadow, such an instance is learnt by the branch predictor, and reading the clock takes longer than it
//          does. Where the code between two instances can be copied, a run goes on over many of them, and its time is told per instance.
// Threads  thread-compatible.
// Source   adr/0024.
#ifndef AGENT_EXPERIMENT_STEPS_BATCH_STEP_H_
#define AGENT_EXPERIMENT_STEPS_BATCH_STEP_H_

#include <string>
#include <vector>

#include "agent/experiment/loop/phase.h"

namespace perfd::agent {

// Once it is known how long instances are.
void ChooseBatch(LoopKnowledge& known);
// There are figures of batches: they are given up where what lies between two instances takes too much of them.
void CheckBatch(LoopKnowledge& known);
// To `most` passes in all, where one instance makes `passes`; or they are given up.
void ShortenBatch(LoopKnowledge& known, uint64_t passes, uint64_t most);
// By a path that copies leave out, or where the loop around ends; or runs of one thread did not all come as far, since what
// they depend on was not brought back. Such a shadow says nothing of a batch; after several batches are given up.
bool LearnEarlyEnd(LoopKnowledge& known, const ShadowAnswer& answer,
                   const std::vector<RunSpec>& runs);

// What an instance takes with all that lies between, before a schedule is made for many of them.
std::vector<RunSpec> BatchRuns(const LoopKnowledge& known);
StepOutcome LearnBatch(LoopKnowledge& known, const ShadowAnswer& answer,
                       const std::vector<RunSpec>& runs);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_STEPS_BATCH_STEP_H_
