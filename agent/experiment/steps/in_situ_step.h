// agent/experiment/steps/in_situ_step.h - recovery mode: copies run in the rank itself, one at an entry. Nothing stands still: the
// rank only goes slower for a while.
//
// Threads  thread-compatible; sleeps meanwhile, bounded by the room.
#ifndef AGENT_EXPERIMENT_STEPS_IN_SITU_STEP_H_
#define AGENT_EXPERIMENT_STEPS_IN_SITU_STEP_H_

#include "agent/experiment/loop/phase.h"

namespace perfd::agent {

StepOutcome RunInSitu(LoopKnowledge& known, RankInjector& injector, const StepRoom& room,
                      StepCost* cost);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_STEPS_IN_SITU_STEP_H_
