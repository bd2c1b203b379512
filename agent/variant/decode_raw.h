// agent/variant/decode_raw.h - what decode.cc and decode_operands.cc share: an instruction as the decoder library gives it.
//
// Source   Zydis 4.0, Decoder.h.
#ifndef AGENT_VARIANT_DECODE_RAW_H_
#define AGENT_VARIANT_DECODE_RAW_H_

#include <Zydis/Zydis.h>

#include <span>

#include "agent/variant/instruction.h"

namespace perfd::agent {

struct RawInstruction {
  ZydisDecodedInstruction instruction;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

  std::span<const ZydisDecodedOperand> all() const {
    return std::span(operands).first(instruction.operand_count);
  }
  std::span<const ZydisDecodedOperand> visible() const {
    return std::span(operands).first(instruction.operand_count_visible);
  }
};

// The number of a register in a RegisterSet; kNoRegister for those that carry no data between instructions of a loop (RIP,
// MXCSR, segments).
int RegisterNumber(ZydisRegister reg);
bool IsVectorRegister(ZydisRegister reg);

// Registers, flags and memory read and written; traits must be set.
void SetOperands(const RawInstruction& raw, LoopInstruction* out);
// destination = source + constant: what grouping of memory operands follows.
void SetStep(const RawInstruction& raw, LoopInstruction* out);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_DECODE_RAW_H_
