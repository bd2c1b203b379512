// agent/variant/flow/edges.h - control flow of a loop body, and proof that it is entered at its header only.
//
// Errors   FailedPrecondition names the instruction and the reason.
// Source   Aho et al., Compilers, 9.6 (natural loops).
#ifndef AGENT_VARIANT_FLOW_EDGES_H_
#define AGENT_VARIANT_FLOW_EDGES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agent/variant/loop_code.h"

namespace perfd::agent {

// Fills next, exits, entry and calls from the instructions.
absl::Status BuildEdges(LoopCode* loop);

// Nothing in the rest of the function leads into the body but to its header; the loop's own detours may, but not under the
// jump there.
absl::Status CheckEntries(const LoopBytes& bytes, const LoopCode& loop);

// Instructions in an order in which every edge leads forward, but for those to the header and those that close loops inside; unreachable
// ones are missing.
std::vector<uint32_t> ForwardOrder(const LoopCode& loop);

bool InBody(const LoopCode& loop, uint64_t address);
// Index of the instruction that starts at `address`, or -1.
int InstructionAt(const LoopCode& loop, uint64_t address);

// "0x401000 `vaddpd %ymm0, %ymm1, %ymm2`: reason", as a FailedPrecondition.
absl::Status Refuse(const LoopInstruction& instruction, absl::string_view reason);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_FLOW_EDGES_H_
