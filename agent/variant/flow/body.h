// agent/variant/flow/body.h - the bytes of a loop's blocks to instructions.
//
// Shape    ReadBody fills body (sorted, merged), instructions, function; nothing is said of edges yet.
// Errors   as DecodeLoop (loop_code.h).
#ifndef AGENT_VARIANT_FLOW_BODY_H_
#define AGENT_VARIANT_FLOW_BODY_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "agent/variant/loop_code.h"

namespace perfd::agent {

// From `address` to the end of the function's part that holds it; empty: none does.
std::span<const uint8_t> BytesAt(const LoopBytes& bytes, uint64_t address);

absl::Status ReadBody(const LoopBytes& bytes, LoopCode* loop);

// Whether the loop's function keeps its stack in RSP: kFailedPrecondition where it puts something else there than RBP, a register that it
// saves RSP in, or what it loads from beside these. POP of RSP is not looked for. Our code writes below it.
// Source: Intel SDM vol. 2, 2.1.5 and MOV, LEA, XCHG.
absl::Status CheckStackPointer(const LoopBytes& bytes);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_FLOW_BODY_H_
