#include "agent/binary/flow/decoder.h"

#include <Zydis/Zydis.h>

#include <algorithm>

namespace perfd::agent {
namespace {

ZydisDecoder MakeDecoder() {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  return decoder;
}

// Source: Intel SDM vol. 2, table 2-2 and 2.2.1.6: in 64-bit mode mod 0, rm 5 is [rip + disp32].
bool IsRipRelative(const ZydisDecodedInstruction& i) {
  return (i.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0 && i.raw.modrm.mod == 0 &&
         i.raw.modrm.rm == 5;
}

// Source: Intel SDM vol. 2, table 2-3: mod 0 and SIB base 5 is [index * scale + disp32]; scale bits 3 mean 8.
bool IsAbsoluteTable(const ZydisDecodedInstruction& i) {
  return (i.attributes & ZYDIS_ATTRIB_HAS_SIB) != 0 && i.raw.modrm.mod == 0 &&
         i.raw.sib.base == 5 && i.raw.sib.scale == 3;
}

// A memory operand without index register: no compiler reads a switch table like that.
// Source: Intel SDM vol. 2, tables 2-2 and 2-3: mod 3 is a register, rm 4 a SIB byte, SIB index 4 (without REX.X) none.
bool IsSlot(const ZydisDecodedInstruction& i) {
  if ((i.attributes & ZYDIS_ATTRIB_HAS_MODRM) == 0 || i.raw.modrm.mod == 3) return false;
  if ((i.attributes & ZYDIS_ATTRIB_HAS_SIB) == 0) return true;
  return i.raw.sib.index == 4 && i.raw.rex.X == 0;
}

Flow FlowOf(const ZydisDecodedInstruction& i) {
  const bool direct = i.raw.imm[0].is_relative != 0;
  switch (i.meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
      return Flow::kConditional;
    case ZYDIS_CATEGORY_UNCOND_BR:
      if (direct) return Flow::kJump;
      return IsSlot(i) ? Flow::kSlotJump : Flow::kIndirectJump;
    case ZYDIS_CATEGORY_CALL:
      return direct ? Flow::kCall : Flow::kIndirectCall;
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_SYSRET:
      return Flow::kReturn;
    default:
      break;
  }
  switch (i.mnemonic) {
    case ZYDIS_MNEMONIC_XBEGIN:
      return Flow::kConditional;
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_INT3:
      return Flow::kTrap;
    default:
      return Flow::kPlain;
  }
}

Clue ClueOf(const ZydisDecodedInstruction& i) {
  switch (i.mnemonic) {
    case ZYDIS_MNEMONIC_LEA:
      return IsRipRelative(i) ? Clue::kTableAddress : Clue::kNone;
    case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_SUB:
      return i.raw.imm[0].size != 0 ? Clue::kCompare : Clue::kNone;
    case ZYDIS_MNEMONIC_AND:
      return i.raw.imm[0].size != 0 ? Clue::kMask : Clue::kNone;
    case ZYDIS_MNEMONIC_JNBE:
    case ZYDIS_MNEMONIC_JBE:
      return Clue::kAbove;
    case ZYDIS_MNEMONIC_JNB:
    case ZYDIS_MNEMONIC_JB:
      return Clue::kAboveOrEqual;
    case ZYDIS_MNEMONIC_JMP:
    case ZYDIS_MNEMONIC_MOV:
      return IsAbsoluteTable(i) ? Clue::kAbsoluteTable : Clue::kNone;
    default:
      return Clue::kNone;
  }
}

bool IsPadding(const ZydisDecodedInstruction& i) {
  return i.mnemonic == ZYDIS_MNEMONIC_NOP || i.mnemonic == ZYDIS_MNEMONIC_INT3 ||
         (i.mnemonic == ZYDIS_MNEMONIC_XCHG && i.opcode == 0x90);
}

}  // namespace

std::optional<Instruction> Decode(std::span<const std::byte> bytes, uint64_t address) {
  static const ZydisDecoder decoder = MakeDecoder();
  ZydisDecodedInstruction raw;
  const size_t length = std::min(bytes.size(), kMaxInstructionLength);
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, nullptr, bytes.data(), length, &raw)))
    return std::nullopt;
  Instruction out;
  out.address = address;
  out.length = raw.length;
  out.flow = FlowOf(raw);
  out.clue = ClueOf(raw);
  out.padding = IsPadding(raw);
  if (raw.raw.imm[0].is_relative != 0) {
    out.target = out.end() + static_cast<uint64_t>(raw.raw.imm[0].value.s);
  } else if (raw.raw.imm[0].size != 0) {
    out.immediate = raw.raw.imm[0].value.u;
  }
  const uint64_t displacement = static_cast<uint64_t>(raw.raw.disp.value);
  if (IsRipRelative(raw)) out.reference = out.end() + displacement;
  if (IsAbsoluteTable(raw)) out.reference = displacement;
  return out;
}

}  // namespace perfd::agent
