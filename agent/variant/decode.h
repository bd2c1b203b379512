// agent/variant/decode.h - the one place of this module that decodes machine code.
//
// Shape    what the bytes say and no more: registers and flags read and written, implicit ones included.
// Errors   nullopt: the bytes are no instruction. Instructions that no copy can hold carry a `refusal`.
// Source   Zydis 4.0, Decoder.h; Intel SDM vol. 2.
#ifndef AGENT_VARIANT_DECODE_H_
#define AGENT_VARIANT_DECODE_H_

#include <cstdint>
#include <optional>
#include <span>

#include "agent/variant/instruction.h"

namespace perfd::agent {

// Only where control goes next; much cheaper.
struct FlowStep {
  uint8_t length = 0;
  LoopFlow flow = LoopFlow::kPlain;
  uint64_t target = 0;
  bool padding = false;  // NOP or INT3
};

std::optional<FlowStep> DecodeFlow(std::span<const uint8_t> bytes, uint64_t address);
std::optional<LoopInstruction> DecodeLoopInstruction(std::span<const uint8_t> bytes,
                                                     uint64_t address, LoadBias bias = {});

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_DECODE_H_
