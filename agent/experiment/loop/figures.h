// agent/experiment/loop/figures.h - runs of shadows -> figures of variants, what is still missing, the measurement that is sent.
//
// Units    cycles of the TSC, of one instance.
// Threads  thread-safe (pure).
#ifndef AGENT_EXPERIMENT_LOOP_FIGURES_H_
#define AGENT_EXPERIMENT_LOOP_FIGURES_H_

#include <map>
#include <string>
#include <vector>

#include "agent/experiment/loop/phase.h"

namespace perfd::agent {

// How the injector says that a run ended.
RunOutcome OutcomeOf(const ShadowRun& run);
// Of each thread: how many instances all of these runs went on over. By the counted run where there is one.
std::map<int32_t, double> InstancesOf(const ShadowAnswer& answer, const std::vector<RunSpec>& runs);
// Keeps the runs from number `skip` on; the one before is the base before the first variant. Trip checks are none of them.
void RecordRuns(LoopKnowledge& known, const ShadowAnswer& answer, const std::vector<RunSpec>& runs,
                int32_t skip);
// Figures anew, from all runs.
void Reduce(LoopKnowledge& known);
// What is still wanted, from what is known.
void UpdateMissing(LoopKnowledge& known);

bool HasFigures(const LoopKnowledge& known);
// With position, cost and, where it is wanted, the assembly of the copies.
LoopMeasurement MeasurementOf(const LoopKnowledge& known, const Position& position, bool listings);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_LOOP_FIGURES_H_
