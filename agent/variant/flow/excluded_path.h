// agent/variant/flow/excluded_path.h - leaves out of a loop the paths that no copy can hold, where it can go round without them.
//
// Shape    a path with a call, a moved stack pointer or the like becomes an exit: the copy goes back to the original text
//          there, which does what it always did and comes to the patched header again. What is measured then is the stretch
//          between two such detours. A loop that cannot go round without them stays whole, and is refused for them.
// Units    run-time addresses.
// Errors   none: what cannot be cut is left to the checks that follow.
// Source   natural loops: Aho et al., Compilers, 9.6.
#ifndef AGENT_VARIANT_FLOW_EXCLUDED_PATH_H_
#define AGENT_VARIANT_FLOW_EXCLUDED_PATH_H_

#include <string>

#include "agent/variant/loop_code.h"

namespace perfd::agent {

// Before BuildEdges. Changes instructions and body; fills `cut` and `detours`.
void ExcludePaths(LoopCode* loop);

// Named to people, if it is among the first.
void NameExcludedPath(const std::string& text, LoopCode* loop);

bool InCut(const LoopCode& loop, uint64_t address);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_FLOW_EXCLUDED_PATH_H_
