#include "agent/variant/decode.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/variant/decode_raw.h"
#include "agent/variant/taxonomy.h"

namespace perfd::agent {
namespace {

bool IsVectorForm(ZydisInstructionEncoding e) {
  return e == ZYDIS_INSTRUCTION_ENCODING_VEX || e == ZYDIS_INSTRUCTION_ENCODING_EVEX ||
         e == ZYDIS_INSTRUCTION_ENCODING_XOP;
}

// The classes an instruction cannot belong to and be copied.
absl::string_view CategoryRefusal(const ZydisDecodedInstruction& i) {
  switch (i.meta.category) {
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_SYSRET:
      return "returns inside the loop";
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_INTERRUPT:
      return "enters the kernel";
    case ZYDIS_CATEGORY_SYSTEM:
    case ZYDIS_CATEGORY_IO:
    case ZYDIS_CATEGORY_IOSTRINGOP:
    case ZYDIS_CATEGORY_SEGOP:
    case ZYDIS_CATEGORY_VTX:
    case ZYDIS_CATEGORY_SGX:
    case ZYDIS_CATEGORY_UINTR:
    case ZYDIS_CATEGORY_ENQCMD:
    case ZYDIS_CATEGORY_CET:
    case ZYDIS_CATEGORY_PKU:
      return "a system instruction";
    case ZYDIS_CATEGORY_XSAVE:
    case ZYDIS_CATEGORY_XSAVEOPT:
      return "saves or restores the whole register state";
    case ZYDIS_CATEGORY_AMX_TILE:
      return "uses tile registers";
    case ZYDIS_CATEGORY_PUSH:
    case ZYDIS_CATEGORY_POP:
      return "moves the stack pointer";
    default:
      return {};
  }
}

LoopFlow FlowOf(const ZydisDecodedInstruction& i) {
  switch (i.meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
      return LoopFlow::kBranch;
    case ZYDIS_CATEGORY_UNCOND_BR:
      return i.raw.imm[0].is_relative != 0 ? LoopFlow::kJump : LoopFlow::kEnd;
    case ZYDIS_CATEGORY_CALL:
      return LoopFlow::kCall;
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_SYSRET:
      return LoopFlow::kEnd;
    default:
      break;
  }
  switch (i.mnemonic) {
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
      return LoopFlow::kEnd;
    default:
      return LoopFlow::kPlain;
  }
}

uint64_t TargetOf(const ZydisDecodedInstruction& i, uint64_t address) {
  if (i.raw.imm[0].is_relative == 0) return 0;
  return address + i.length + static_cast<uint64_t>(i.raw.imm[0].value.s);
}

void SetFlow(const ZydisDecodedInstruction& i, LoopInstruction* out) {
  out->flow = FlowOf(i);
  if (out->flow == LoopFlow::kPlain) return;
  out->target = TargetOf(i, out->address);
  if (i.meta.category == ZYDIS_CATEGORY_UNCOND_BR && out->flow == LoopFlow::kEnd)
    out->refusal = "an indirect jump";
  if (i.raw.imm[0].is_relative == 0) return;
  out->branch_at = i.raw.imm[0].offset;
  const int size = i.raw.imm[0].size;
  if ((size != 8 && size != 32) || out->branch_at + size / 8 != out->length)
    out->refusal = "a branch of unusual form";
}

// Source: System V ABI AMD64, 3.2.1: what a callee need not preserve; it may read its arguments.
void AddCall(LoopInstruction* out) {
  if (out->flow != LoopFlow::kCall) return;
  constexpr RegisterSet kScratch = 0x0fc7;  // RAX RCX RDX RSI RDI R8-R11
  out->reads |= kScratch | (0xffull << kVectorRegisters);
  out->writes |= kScratch | kAllVector | kStatusFlags | (0xffull << kMaskRegisters);
  // The return address comes and goes; the stack pointer is what it was.
  out->traits &= ~kStringOp;
  for (RegisterSet* set : {&out->reads, &out->writes, &out->kills, &out->address_reads})
    *set &= ~Bit(kStackPointer);
}

void SetTraits(const RawInstruction& raw, LoopInstruction* out) {
  const ZydisDecodedInstruction& i = raw.instruction;
  const bool vector =
      std::any_of(raw.visible().begin(), raw.visible().end(), [](const ZydisDecodedOperand& o) {
        return o.type == ZYDIS_OPERAND_TYPE_REGISTER && IsVectorRegister(o.reg.value);
      });
  absl::string_view name = out->mnemonic;
  if (IsVectorForm(i.encoding)) name.remove_prefix(1);
  if (vector) out->traits |= VectorTraits(name);
  if (!vector && (absl::StartsWith(name, "mov"))) out->traits |= kMoves;
  if (name == "div" || name == "idiv") out->traits |= kDivides;
  if (name == "movnti") out->traits |= kNonTemporal;
  if (absl::StartsWith(name, "prefetch")) out->traits |= kPrefetches;
  if ((i.attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0) out->traits |= kLocked;
  if (i.meta.isa_ext == ZYDIS_ISA_EXT_X87 || i.meta.isa_ext == ZYDIS_ISA_EXT_MMX)
    out->traits |= kX87;
  if (i.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX) out->traits |= kVex;
  if (i.encoding != ZYDIS_INSTRUCTION_ENCODING_EVEX) return;
  out->traits |= kEvex;
  const int mask = RegisterNumber(i.avx.mask.reg);
  if (mask > kMaskRegisters) out->mask = mask - kMaskRegisters;
  if (out->mask > 0) out->traits |= kMaskedMemory;
  if (out->mask > 0 && i.avx.mask.mode == ZYDIS_MASK_MODE_MERGING) out->traits |= kMergeMasked;
  if (i.avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID && i.avx.broadcast.is_static == 0)
    out->traits |= kBroadcasts;
  if (i.avx.has_sae != 0 || i.avx.rounding.mode != ZYDIS_ROUNDING_MODE_INVALID)
    out->traits |= kRounds;
}

ZydisFormatter MakeFormatter() {
  ZydisFormatter formatter;
  ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_ATT);
  for (ZydisFormatterProperty property :
       {ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_FORMATTER_PROP_ADDR_PADDING_RELATIVE,
        ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_FORMATTER_PROP_IMM_PADDING})
    ZydisFormatterSetProperty(&formatter, property, ZYDIS_PADDING_DISABLED);
  ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
  return formatter;
}

void SetText(const RawInstruction& raw, LoopInstruction* out) {
  const ZydisFormatter formatter = MakeFormatter();
  char text[128];
  const ZyanStatus status = ZydisFormatterFormatInstruction(
      &formatter, &raw.instruction, raw.operands, raw.instruction.operand_count_visible, text,
      sizeof(text), out->listed.value(), nullptr);
  out->text = ZYAN_SUCCESS(status) ? text : out->mnemonic;
  // The formatter appends a size to the mnemonic wherever there is memory; vector names have theirs already.
  const size_t end = out->mnemonic.size();
  const bool suffixed = absl::StartsWith(out->text, out->mnemonic) && out->text.size() > end + 1 &&
                        out->text[end] != ' ' && out->text[end + 1] == ' ';
  if (suffixed && out->Is(kVectorOp)) out->text.erase(end, 1);
}

void SetRefusal(const ZydisDecodedInstruction& i, LoopInstruction* out) {
  if (!out->refusal.empty()) return;
  absl::string_view reason = CategoryRefusal(i);
  if (reason.empty()) reason = MnemonicRefusal(out->mnemonic);
  if (reason.empty() && out->flow != LoopFlow::kCall && (out->writes & Bit(kStackPointer)) != 0)
    reason = "moves the stack pointer";
  out->refusal = std::string(reason);
}

ZydisDecoder MakeDecoder() {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  return decoder;
}

size_t Window(std::span<const uint8_t> bytes) {
  return std::min<size_t>(bytes.size(), ZYDIS_MAX_INSTRUCTION_LENGTH);
}

}  // namespace

std::optional<FlowStep> DecodeFlow(std::span<const uint8_t> bytes, uint64_t address) {
  const ZydisDecoder decoder = MakeDecoder();
  ZydisDecodedInstruction i;
  if (!ZYAN_SUCCESS(
          ZydisDecoderDecodeInstruction(&decoder, nullptr, bytes.data(), Window(bytes), &i)))
    return std::nullopt;
  FlowStep step;
  step.length = i.length;
  step.flow = FlowOf(i);
  step.target = TargetOf(i, address);
  step.padding = i.mnemonic == ZYDIS_MNEMONIC_NOP || i.mnemonic == ZYDIS_MNEMONIC_INT3 ||
                 i.meta.category == ZYDIS_CATEGORY_WIDENOP;
  return step;
}

std::optional<LoopInstruction> DecodeLoopInstruction(std::span<const uint8_t> bytes,
                                                     uint64_t address, LoadBias bias) {
  const ZydisDecoder decoder = MakeDecoder();
  RawInstruction raw;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), Window(bytes), &raw.instruction,
                                           raw.operands)))
    return std::nullopt;
  LoopInstruction out;
  out.address = address;
  out.listed = RuntimeAddress(address) - bias;
  out.length = raw.instruction.length;
  std::copy_n(bytes.begin(), out.length, out.bytes.begin());
  const char* mnemonic = ZydisMnemonicGetString(raw.instruction.mnemonic);
  out.mnemonic = mnemonic == nullptr ? "?" : mnemonic;
  SetTraits(raw, &out);
  SetOperands(raw, &out);
  SetFlow(raw.instruction, &out);
  AddCall(&out);
  SetStep(raw, &out);
  SetText(raw, &out);
  SetRefusal(raw.instruction, &out);
  return out;
}

}  // namespace perfd::agent
