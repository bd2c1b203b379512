// agent/experiment/plan/shared_lines.h - which accesses of a loop go to cache lines that its threads take away from each other.
//
// Shape    SharedReferences(references, traces of all threads of one instance) -> one flag for each reference. Only where the
//          trace tells every address: one fixed address, or once along a range in equal steps. What it does not tell is no sharing.
//          An access is one of shared lines where most of those that a thread goes to with it are: the seam between two parts is none.
//          Lines at the ends of a thread's part, which it fills only partly, belong to two threads and are no sharing either: one
//          is through with them before the other comes, or the other way round.
// Units    lines of 64 bytes; accesses of the traced passes.
// Threads  thread-safe (pure).
// Source   what a line costs that another core has written: Intel 64 and IA-32 Optimization Reference Manual, B.1 (HITM);
//          docs/adr/0035-some-ranks-and-shared-lines.md for the edges.
#ifndef AGENT_EXPERIMENT_PLAN_SHARED_LINES_H_
#define AGENT_EXPERIMENT_PLAN_SHARED_LINES_H_

#include <span>
#include <vector>

#include "agent/experiment/plan/trace_summary.h"

namespace perfd::agent {

// A line changes hands as often as the thread that writes it most and all others touch it in turn. Where that is rarer than in one
// of so many passes, it costs little.
inline constexpr double kRarestSharing = 0.01;

std::vector<bool> SharedReferences(std::span<const Reference> references,
                                   std::span<const ThreadTrace> threads);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_PLAN_SHARED_LINES_H_
