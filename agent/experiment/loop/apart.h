// agent/experiment/loop/apart.h - copies that rest on accesses being apart: where a trace shows that, and what holds it against the
// variants themselves.
//
// Shape    ChooseApart after the probe; AddressChecks for variants that were not yet held against the loop; CheckPaths and CheckAddresses
//          learn from such runs. One that differs, and the assumption is withdrawn for the whole loop: its figures are forgotten.
// Threads  thread-safe (pure).
// Source   docs/adr/0031-taken-apart.md.
#ifndef AGENT_EXPERIMENT_LOOP_APART_H_
#define AGENT_EXPERIMENT_LOOP_APART_H_

#include <span>
#include <vector>

#include "agent/experiment/loop/knowledge.h"

namespace perfd::agent {

// kApart: no two of a pair touched the same bytes. kUnlessTaken: nor may they, as long as no thread takes a path that none has taken.
// What could not be traced shows nothing.
enum class Apartness : uint8_t { kMayMeet, kUnlessTaken, kApart };
Apartness ShownApart(const TraceSummary& trace, std::span<const AccessPair> pairs, LoadBias bias);

void ChooseApart(LoopKnowledge& known);
// The loop's own trace first, then that of each variant that has none yet; empty: all are held against it.
std::vector<RunSpec> AddressChecks(const LoopKnowledge& known,
                                   const std::vector<int32_t>& variants);
// False: variants that rest on paths which are not taken tell nothing in this shadow, where they are, or where it could not be shown.
bool CheckPaths(LoopKnowledge& known, const ShadowAnswer& answer, const std::vector<RunSpec>& runs);
// False: the assumption is withdrawn.
bool CheckAddresses(LoopKnowledge& known, const ShadowAnswer& answer,
                    const std::vector<RunSpec>& runs);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_LOOP_APART_H_
