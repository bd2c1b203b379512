// agent/experiment/plan/next_stage.h - which variants of a loop to run next.
//
// Shape    what is known of a loop, and what was asked -> names of variants.
// Threads  thread-safe (pure).
// Source   hazards, "What the budget buys".
#ifndef AGENT_EXPERIMENT_PLAN_NEXT_STAGE_H_
#define AGENT_EXPERIMENT_PLAN_NEXT_STAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/analysis/verdict.h"

namespace perfd::agent {

struct StagePlan {
  std::vector<std::string> asked;  // canonical names of the request
  int groups = 0;                  // static groups of the loop
  uint32_t repetitions = 31;
  // Where trip counts vary: as many instances of what the verdict needs, once everything else is known. 0: they do not.
  uint32_t instances = 0;
};
inline constexpr int kMostGroups = 8;  // GROUP(0) .. GROUP(7) are added where memory decides

// What is not yet known well enough of the first stage that is not complete: REF LS FP DL1; then what the verdict asks for;
// then the rest of the request. Least tried first: a verdict needs all of them. Empty: nothing is left. Refused variants are
// never named.
std::vector<std::string> NextStage(const LoopMeasurement& loop, const StagePlan& plan,
                                   const VerdictEdges& edges = {});
// After that: what has been seen in fewer than plan.instances instances, of the first stage and CTRL.
std::vector<std::string> InstanceStage(const LoopMeasurement& loop, const StagePlan& plan);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_PLAN_NEXT_STAGE_H_
