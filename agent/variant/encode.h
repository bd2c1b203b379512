// agent/variant/encode.h - the one place that encodes changed instructions.
//
// Shape    each function takes an instruction and gives one that does part of its work, in the same family (legacy SSE, VEX,
//          EVEX; masks kept). Registers are bit numbers of RegisterSet. `offset` addresses the thread block through GS.
// Errors   Unimplemented: there is no such form; the text names the instruction.
// Source   Zydis 4.0, Encoder.h; Intel SDM vol. 2.
#ifndef AGENT_VARIANT_ENCODE_H_
#define AGENT_VARIANT_ENCODE_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "agent/variant/instruction.h"
#include "agent/variant/layout.h"

namespace perfd::agent {

// The memory operand replaced by gs:[offset], plus `index` of the operand with its scale when given, or by a register of the
// right width.
absl::StatusOr<Encoded> EncodeToBlock(const LoopInstruction& instruction, uint32_t offset,
                                      int index = kNoRegister);
absl::StatusOr<Encoded> EncodeToRegister(const LoopInstruction& instruction, int number);

// A plain load of the memory operand (or of gs:[offset]) into `number`.
absl::StatusOr<Encoded> EncodeLoad(const LoopInstruction& instruction, int number,
                                   std::optional<uint32_t> offset = std::nullopt);

// The last register source replaced by gs:[offset]; the one before it, where there is one, by the destination.
absl::StatusOr<Encoded> EncodeControlled(const LoopInstruction& instruction, uint32_t offset);
// The whole destination of `instruction` loaded from gs:[offset].
absl::StatusOr<Encoded> EncodeFill(const LoopInstruction& instruction, uint32_t offset);

// Clears a register without reading it; `keep_flags` matters for general ones.
absl::StatusOr<Encoded> EncodeZero(const LoopInstruction& instruction, int number, bool keep_flags);

absl::StatusOr<Encoded> EncodePrefetch(const LoopInstruction& instruction);
absl::StatusOr<Encoded> EncodeCompare(const LoopInstruction& instruction);  // cmp $0, memory
absl::StatusOr<Encoded> EncodeLea(const LoopInstruction& instruction,
                                  int number);  // without segment base

// The same access, or address, by a stack pointer that is `depth` bytes higher; PUSH and POP of a register, which leave it, as moves.
absl::StatusOr<Encoded> EncodeInFrame(const LoopInstruction& instruction, int64_t depth);

// A vector register of `bytes` bytes stored to gs:[offset].
absl::StatusOr<Encoded> EncodeSpill(const LoopInstruction& instruction, int number, int bytes,
                                    uint32_t offset);

// The vector or general register that the instruction reads beside memory: not the destination if there is another.
int OtherSource(const LoopInstruction& instruction);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_ENCODE_H_
