// agent/experiment/steps/live_steps.h - what is learnt from the rank's own run: who enters the loop, how long instances take.
//
// Threads  thread-compatible; both sleep meanwhile, bounded by the room.
#ifndef AGENT_EXPERIMENT_STEPS_LIVE_STEPS_H_
#define AGENT_EXPERIMENT_STEPS_LIVE_STEPS_H_

#include "agent/experiment/loop/phase.h"

namespace perfd::agent {

StepOutcome CountEntries(LoopKnowledge& known, RankInjector& injector, const StepRoom& room);
// Short instances are timed in bursts.
StepOutcome TimeLive(LoopKnowledge& known, RankInjector& injector, const StepRoom& room);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_STEPS_LIVE_STEPS_H_
