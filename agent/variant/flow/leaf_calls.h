// agent/variant/flow/leaf_calls.h - takes the code of small functions that a loop calls into the loop.
//
// Shape    a call of a leaf, direct or through a word of the linker's, becomes a jump to its code in the copy, and its return a jump
//          behind the call: nothing is pushed, so that no return address into a copy is ever on a stack, and variants change what
//          the leaf does like the rest. A leaf (leaf_reader.h) is called once in the loop.
// Errors   none: other calls stay what they are; Leaves::refusals says why.
// Source   System V ABI AMD64, 3.2.2 (the red zone); docs/adr/0038-loops-that-call.md.
#ifndef AGENT_VARIANT_FLOW_LEAF_CALLS_H_
#define AGENT_VARIANT_FLOW_LEAF_CALLS_H_

#include "agent/variant/flow/leaf_reader.h"
#include "agent/variant/loop_code.h"

namespace perfd::agent {

// After ReadBody, before BuildEdges. Changes instructions; fills `leaves`. True: it took in at least one.
bool TakeInLeaves(const LoopBytes& bytes, LoopCode* loop);

// What LoopBytes::called still lacks of the functions that the body calls.
WantedCode WantedBy(const LoopBytes& bytes);

bool InLeaf(const LoopCode& loop, uint64_t address);
// Of another module: what it reads beside itself cannot be reached from a copy.
bool InFarLeaf(const LoopCode& loop, uint64_t address);

// Of memory that nobody writes to.
bool ReadsConstant(const LoopCode& loop, const LoopInstruction& i);
// Whether a target stands for a way out of a leaf.
bool LeavesLeaf(const LoopCode& loop, uint64_t target);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_FLOW_LEAF_CALLS_H_
