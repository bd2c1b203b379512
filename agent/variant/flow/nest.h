// agent/variant/flow/nest.h - the loops inside a loop.
//
// Shape    one InnerLoop per header, in forward order: those around come before those within them.
// Errors   FailedPrecondition, of CheckNest: a cycle that is also entered elsewhere than at its header; too many loops.
// Source   Aho et al., Compilers, 9.6.6 (natural loops, reducible graphs).
#ifndef AGENT_VARIANT_FLOW_NEST_H_
#define AGENT_VARIANT_FLOW_NEST_H_

#include <vector>

#include "absl/status/status.h"
#include "agent/variant/loop_code.h"

namespace perfd::agent {

// Of a loop whose edges are known. Of a cycle with several entries: all from where it may be gone round again.
std::vector<InnerLoop> InnerLoops(const LoopCode& loop);

// Each is entered at its header only, and they are few.
absl::Status CheckNest(const LoopCode& loop);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_FLOW_NEST_H_
