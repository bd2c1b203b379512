// agent/variant/flow/leaf_calls.h - takes the code of small functions that a loop calls into the loop.
//
// Shape    a direct call of a leaf becomes a jump to its code in the copy, and its return a jump behind the call: nothing is
//          pushed, so that no return address into a copy is ever on a stack, and variants change what the leaf does like the rest.
//          A leaf: its instructions are all known, it touches no stack, calls nothing, has no loop, and is called once in the loop.
// Errors   none: other calls stay what they are.
// Source   System V ABI AMD64, 3.2.2 (a leaf that keeps RSP sees no difference); docs/adr/0038-loops-that-call.md.
#ifndef AGENT_VARIANT_FLOW_LEAF_CALLS_H_
#define AGENT_VARIANT_FLOW_LEAF_CALLS_H_

#include "agent/variant/loop_code.h"

namespace perfd::agent {

inline constexpr size_t kMostLeafInstructions = 512;

// After ReadBody, before BuildEdges. Changes instructions; fills `leaves`. True: it took in at least one.
bool TakeInLeaves(const LoopBytes& bytes, LoopCode* loop);

// Of direct calls in the body, each once, sorted: whose text LoopBytes::called should hold.
std::vector<uint64_t> CalledBy(const LoopBytes& bytes);

bool InLeaf(const LoopCode& loop, uint64_t address);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_FLOW_LEAF_CALLS_H_
