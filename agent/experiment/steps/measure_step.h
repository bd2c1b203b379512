// agent/experiment/steps/measure_step.h - a shadow that runs what is missing, each variant between two runs of its base.
//
// Threads  thread-compatible.
#ifndef AGENT_EXPERIMENT_STEPS_MEASURE_STEP_H_
#define AGENT_EXPERIMENT_STEPS_MEASURE_STEP_H_

#include <vector>

#include "agent/experiment/loop/phase.h"

namespace perfd::agent {

struct MeasureRuns {
  std::vector<RunSpec> runs;
  int32_t skip = 0;  // the first ones, which do not count
};

// As much as fits the room.
MeasureRuns ScheduleMissing(const LoopKnowledge& known, const StepRoom& room);
StepOutcome LearnRuns(LoopKnowledge& known, const ShadowAnswer& answer,
                      const MeasureRuns& scheduled);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_STEPS_MEASURE_STEP_H_
