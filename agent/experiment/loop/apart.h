// agent/experiment/loop/apart.h - copies that rest on accesses being apart: where a trace shows that, and what holds it against the
// variants themselves.
//
// Shape    ChooseApart after the probe; AddressChecks for variants that were not yet held against the loop; CheckAddresses learns
//          from such runs. One that differs, and the assumption is withdrawn for the whole loop: its figures are forgotten.
// Threads  thread-safe (pure).
// Source   docs/adr/0031-taken-apart.md.
#ifndef AGENT_EXPERIMENT_LOOP_APART_H_
#define AGENT_EXPERIMENT_LOOP_APART_H_

#include <span>
#include <vector>

#include "agent/experiment/loop/knowledge.h"

namespace perfd::agent {

// No two of a pair touched the same bytes. What was not executed, or not traced, shows nothing.
bool ShownApart(const TraceSummary& trace, std::span<const AccessPair> pairs, LoadBias bias);

void ChooseApart(LoopKnowledge& known);
// The loop's own trace first, then that of each variant that has none yet; empty: all are held against it.
std::vector<RunSpec> AddressChecks(const LoopKnowledge& known,
                                   const std::vector<int32_t>& variants);
// False: the assumption is withdrawn.
bool CheckAddresses(LoopKnowledge& known, const ShadowAnswer& answer,
                    const std::vector<RunSpec>& runs);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_LOOP_APART_H_
