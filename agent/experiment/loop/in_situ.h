// agent/experiment/loop/in_situ.h - recovery mode: when copies run in the rank itself, which ones, and what that costs.
//
// Shape    for instances so short that a shadow, which runs one of them over and over, only shows what the branch predictor has
//          learnt of it.
// Units    ns of wall time.
// Threads  thread-safe (pure).
#ifndef AGENT_EXPERIMENT_LOOP_IN_SITU_H_
#define AGENT_EXPERIMENT_LOOP_IN_SITU_H_

#include <vector>

#include "agent/experiment/loop/knowledge.h"

namespace perfd::agent {

// Once it is known how long instances are.
void ChooseMode(LoopKnowledge& known);
// The loop alone, then every missing variant between two runs of its base; one run counts passes.
std::vector<int32_t> InSituRound(const LoopKnowledge& known);
int64_t InSituNs(const LoopKnowledge& known);  // of one run
int64_t LeastInSituNs(const LoopKnowledge& known);
// Of a dry run: whether it would be used, and why not.
void PredictMode(const LoopKnowledge& known, LoopMeasurement& out);
void DescribeMode(const LoopKnowledge& known, LoopMeasurement& out);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_LOOP_IN_SITU_H_
