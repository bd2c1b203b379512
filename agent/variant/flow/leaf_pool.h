// agent/variant/flow/leaf_pool.h - what leaves need beside a loop's copies: constants that copies can reach, and ways out of a leaf. Pure.
//
// Shape    one pool for all copies of a loop. Constants keep their places in their cache lines, and lines that followed each other still
//          do. A way out pushes the addresses behind the original calls, each at its place, lowers the stack pointer to where it is due
//          and goes on in the leaf's own text: what is on the stack is what the original would have there, and no register or flag
//          changes.
// Units    run-time addresses; bytes.
// Source   Intel SDM vol. 2: PUSH (FF /6), JMP (FF /4), both of a word beside them; System V ABI AMD64, 3.2.2 (a function that
//          calls has no red zone then; what it holds below its stack pointer is none of its own).
#ifndef AGENT_VARIANT_FLOW_LEAF_POOL_H_
#define AGENT_VARIANT_FLOW_LEAF_POOL_H_

#include <cstdint>
#include <vector>

#include "agent/variant/loop_code.h"

namespace perfd::agent {

// 0: this loop needs none.
uint64_t LeafPoolBytes(const LoopCode& loop);

// Makes copies of `loop` use a pool at `address`, a multiple of 64, and gives its bytes.
std::vector<uint8_t> UseLeafPool(uint64_t address, LoopCode* loop);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_FLOW_LEAF_POOL_H_
