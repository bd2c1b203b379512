// agent/experiment/steps/shadow.h - one shadow of a loop: asked for, run, and charged.
//
// Shape    RunShadow -> the answer, or none with what came of the attempt. What every shadow tells, of costs and of the clock, is
//          learnt here; what its runs tell, by the step that asked for it.
// Units    ns of wall time.
// Threads  thread-compatible; sleeps while the shadow runs, bounded by the room.
#ifndef AGENT_EXPERIMENT_STEPS_SHADOW_H_
#define AGENT_EXPERIMENT_STEPS_SHADOW_H_

#include <optional>
#include <vector>

#include "agent/experiment/loop/phase.h"

namespace perfd::agent {

struct ShadowOutcome {
  std::optional<ShadowAnswer> answer;  // none: see `outcome`
  StepOutcome outcome = {};
  StepCost cost = {};
};

// `runs_ns`: what the runs are expected to take. `restore`: what they write is brought back between them.
ShadowOutcome RunShadow(LoopKnowledge& known, RankInjector& injector, const StepRoom& room,
                        std::vector<RunSpec> runs, int64_t runs_ns, bool restore);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_STEPS_SHADOW_H_
