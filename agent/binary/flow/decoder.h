// agent/binary/flow/decoder.h - the one door to the instruction decoder (Zydis).
//
// Shape    Decode(bytes, address) -> the first instruction of bytes, or nothing when they are none.
// Threads  thread-safe (pure).
// Source   Intel SDM vol. 2, chapter 2 (ModRM, SIB, RIP-relative addressing in 2.2.1.6).
#ifndef AGENT_BINARY_FLOW_DECODER_H_
#define AGENT_BINARY_FLOW_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "agent/binary/flow/instruction.h"

namespace perfd::agent {

// Source: Intel SDM vol. 2, 2.3.11 "AVX Instruction Length": 15 bytes is the limit of every encoding.
inline constexpr size_t kMaxInstructionLength = 15;

std::optional<Instruction> Decode(std::span<const std::byte> bytes, uint64_t address);

}  // namespace perfd::agent

#endif  // AGENT_BINARY_FLOW_DECODER_H_
