// agent/variant/flow/leaf_frame.h - instructions of a called function as they are where nothing moves the stack pointer. Pure.
//
// Shape    a copy keeps the stack pointer of the loop throughout: what a function holds in its frame, or below it, lies at the same
//          addresses, counted from there. PUSH and POP become moves; what only moves the stack pointer becomes nothing.
// Units    bytes below the loop's stack pointer. Signals leave kRedZone bytes alone: no more can be held.
// Errors   FailedPrecondition: it does something else with the stack pointer.
// Source   System V ABI AMD64, 3.2.2 (the red zone); docs/adr/0038-loops-that-call.md.
#ifndef AGENT_VARIANT_FLOW_LEAF_FRAME_H_
#define AGENT_VARIANT_FLOW_LEAF_FRAME_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/variant/loop_code.h"

namespace perfd::agent {

inline constexpr int64_t kRedZone = 128;
inline constexpr int64_t kReturnAddressBytes = 8;

// By how much it lowers the stack pointer; none: code does not tell.
std::optional<int64_t> Lowers(const LoopInstruction& i);

// Of the instruction where the original's stack pointer is `depth` bytes below the loop's.
absl::StatusOr<LoopInstruction> InFrame(const LoopInstruction& i, int64_t depth, LoadBias bias);

// The instructions, as InFrame gives them, by which the stack would be touched where a copy does not hold it: beyond the red zone, at a
// return address (`returns`: of each instruction, how deep those lie that are there in the original), or where code does not tell, for
// which addresses of the stack are followed from register to register and through what is saved on it. What comes behind one of them
// is not looked at.
std::vector<uint64_t> TouchBeyondFrame(const std::map<uint64_t, LoopInstruction>& code,
                                       uint64_t entry,
                                       const std::map<uint64_t, std::vector<int64_t>>& returns);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_FLOW_LEAF_FRAME_H_
