#include <algorithm>
#include <array>

#include "agent/variant/decode_raw.h"
#include "agent/variant/taxonomy.h"

namespace perfd::agent {
namespace {

RegisterSet SetOf(int number) {
  return number < 0 ? 0 : Bit(number);
}

// Source: Intel SDM vol. 1, 3.4.3.1 (status flags), 3.4.3.2 (DF).
RegisterSet FlagSet(ZydisAccessedFlagsMask mask) {
  constexpr std::array<ZydisAccessedFlagsMask, 7> kOrder = {
      ZYDIS_CPUFLAG_CF, ZYDIS_CPUFLAG_PF, ZYDIS_CPUFLAG_AF, ZYDIS_CPUFLAG_ZF,
      ZYDIS_CPUFLAG_SF, ZYDIS_CPUFLAG_OF, ZYDIS_CPUFLAG_DF};
  RegisterSet set = 0;
  for (size_t i = 0; i < kOrder.size(); ++i)
    if ((mask & kOrder[i]) != 0) set |= Bit(kCarryFlag + static_cast<int>(i));
  return set;
}

void SetMemory(const ZydisDecodedInstruction& i, const ZydisDecodedOperand& o,
               LoopInstruction* out) {
  MemoryOperand m;
  m.base = o.mem.base == ZYDIS_REGISTER_RIP ? kInstructionPointer : RegisterNumber(o.mem.base);
  m.index = RegisterNumber(o.mem.index);
  m.vector_index = IsVectorRegister(o.mem.index);
  if (m.vector_index) {
    m.index_bytes =
        static_cast<uint16_t>(ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, o.mem.index) / 8);
  }
  m.scale = std::max<int>(1, o.mem.scale);
  m.displacement = o.mem.disp.value;
  if (m.base == kInstructionPointer) {
    m.target = out->end() + static_cast<uint64_t>(m.displacement);
    out->displacement_at = i.raw.disp.offset;
  }
  m.thread_local_segment = o.mem.segment == ZYDIS_REGISTER_FS;
  m.bytes = static_cast<uint16_t>(o.size / 8);
  m.reads = (o.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
  m.writes = (o.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
  if (out->Is(kPrefetches)) m.reads = m.writes = false;
  if (m.reads) out->traits |= kLoads;
  if (m.writes) out->traits |= kStores;
  out->memory = m;
}

void AddMemory(const ZydisDecodedInstruction& i, const ZydisDecodedOperand& o,
               LoopInstruction* out) {
  const RegisterSet used = SetOf(RegisterNumber(o.mem.base)) | SetOf(RegisterNumber(o.mem.index));
  out->reads |= used;
  if (o.mem.segment == ZYDIS_REGISTER_GS) out->refusal = "uses GS";
  if (o.mem.type == ZYDIS_MEMOP_TYPE_AGEN) {
    if (o.mem.base == ZYDIS_REGISTER_RIP) {
      out->displacement_at = i.raw.disp.offset;
      MemoryOperand m;
      m.base = kInstructionPointer;
      m.target = out->end() + static_cast<uint64_t>(o.mem.disp.value);
      out->memory = m;  // neither read nor written
    }
    return;
  }
  out->address_reads |= used;
  if (i.address_width != 64) out->refusal = "an address of 32 bits";
  if (o.visibility != ZYDIS_OPERAND_VISIBILITY_EXPLICIT) {
    out->traits |= kStringOp;
    return;
  }
  SetMemory(i, o, out);
}

// Whether a write leaves part of the register as it was.
bool KeepsPart(const ZydisDecodedInstruction& i, const ZydisDecodedOperand& o,
               const LoopInstruction& out) {
  const ZydisRegisterClass c = ZydisRegisterGetClass(o.reg.value);
  if (c == ZYDIS_REGCLASS_GPR8 || c == ZYDIS_REGCLASS_GPR16) return true;
  if ((o.actions & ZYDIS_OPERAND_ACTION_CONDWRITE) != 0) return true;
  if (out.mnemonic == "bsf" || out.mnemonic == "bsr") return true;
  if (!IsVectorRegister(o.reg.value)) return false;
  if (out.Is(kMergeMasked)) return o.id == 0;
  return i.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
         MergesDestination(out.mnemonic, out.Is(kLoads));
}

void AddRegister(const ZydisDecodedInstruction& i, const ZydisDecodedOperand& o,
                 LoopInstruction* out) {
  if (o.reg.value == ZYDIS_REGISTER_RFLAGS || o.reg.value == ZYDIS_REGISTER_EFLAGS ||
      o.reg.value == ZYDIS_REGISTER_FLAGS)
    return;
  // K0 in the place of a mask means "no mask".
  if (o.encoding == ZYDIS_OPERAND_ENCODING_MASK && o.reg.value == ZYDIS_REGISTER_K0) return;
  const RegisterSet set = SetOf(RegisterNumber(o.reg.value));
  if ((o.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0) out->reads |= set;
  if ((o.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) return;
  out->writes |= set;
  if (KeepsPart(i, o, *out)) {
    out->reads |= set;
  } else if ((set & Bit(kOtherState)) == 0) {
    out->kills |= set;
  }
}

// What decides which lanes of a memory operand are touched is part of its address.
void AddMemoryMask(const RawInstruction& raw, LoopInstruction* out) {
  if (!out->Accesses()) return;
  if (out->mask > 0) out->address_reads |= Bit(kMaskRegisters + out->mask);
  const bool vector_mask = out->Is(kVex) && out->Is(kMaskedMemory | kGathers);
  const size_t target = out->Is(kGathers) ? 2 : 1;  // [to, from, mask] and [to, mask, from]
  const auto visible = raw.visible();
  if (!vector_mask || visible.size() <= target) return;
  if (visible[target].type != ZYDIS_OPERAND_TYPE_REGISTER) return;
  const int mask = RegisterNumber(visible[target].reg.value);
  out->address_reads |= SetOf(mask);
  if (out->Is(kGathers)) out->memory->lane_mask = mask;
}

// How wide the register is that a gather fills or a scatter empties.
void SetDataWidth(const RawInstruction& raw, LoopInstruction* out) {
  if (!out->memory || !out->memory->vector_index || raw.visible().empty()) return;
  const auto visible = raw.visible();
  const ZydisDecodedOperand& data = out->Is(kGathers) ? visible.front() : visible.back();
  out->memory->data_bytes = static_cast<uint16_t>(data.size / 8);
}

// Both sources are one register: the result does not depend on it.
void DropIdiomReads(const RawInstruction& raw, LoopInstruction* out) {
  const auto visible = raw.visible();
  if (out->memory || !IsZeroIdiom(out->mnemonic)) return;
  RegisterSet sources = 0;
  int count = 0;
  for (const ZydisDecodedOperand& o : visible) {
    if (o.type != ZYDIS_OPERAND_TYPE_REGISTER) return;
    if (ZydisRegisterGetClass(o.reg.value) == ZYDIS_REGCLASS_MASK) {
      if (out->mask > 0 || o.id == 0) return;
      continue;
    }
    if ((o.actions & ZYDIS_OPERAND_ACTION_MASK_READ) == 0) continue;
    sources |= SetOf(RegisterNumber(o.reg.value));
    ++count;
  }
  if (count != 2 || (sources & (sources - 1)) != 0) return;
  const ZydisRegisterClass c = ZydisRegisterGetClass(visible[0].reg.value);
  if (c == ZYDIS_REGCLASS_GPR8 || c == ZYDIS_REGCLASS_GPR16) return;
  out->reads &= ~sources;
  out->traits &= ~(kAccumulates | kArithmetic | kFloating);
}

void AddFlags(const ZydisDecodedInstruction& i, LoopInstruction* out) {
  if (i.cpu_flags == nullptr) return;
  const ZydisAccessedFlags& f = *i.cpu_flags;
  const RegisterSet written = FlagSet(f.modified | f.set_0 | f.set_1 | f.undefined);
  out->reads |= FlagSet(f.tested);
  out->writes |= written;
  // A shift by CL leaves the flags alone when CL is zero; so does a repeated comparison of nothing.
  const bool maybe = i.meta.category == ZYDIS_CATEGORY_SHIFT ||
                     i.meta.category == ZYDIS_CATEGORY_ROTATE || out->Is(kStringOp);
  // What is undefined may be what it was before: AMD's IMUL leaves ZF and SF alone, Intel's does not. Nothing that a loop holds
  // reads AF.
  const RegisterSet kept = FlagSet(f.undefined) & ~FlagSet(ZYDIS_CPUFLAG_AF);
  if (!maybe) out->kills |= written & ~kept;
}

}  // namespace

int RegisterNumber(ZydisRegister reg) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  const ZydisRegister known = whole == ZYDIS_REGISTER_NONE ? reg : whole;
  const int id = ZydisRegisterGetId(known);
  switch (ZydisRegisterGetClass(known)) {
    case ZYDIS_REGCLASS_GPR64:
      return kGeneralRegisters + id;
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM:
      return kVectorRegisters + id;
    case ZYDIS_REGCLASS_MASK:
      return kMaskRegisters + id;
    case ZYDIS_REGCLASS_MMX:
    case ZYDIS_REGCLASS_X87:
      return kOtherState;
    default:
      break;
  }
  switch (known) {
    case ZYDIS_REGISTER_X87CONTROL:
    case ZYDIS_REGISTER_X87STATUS:
    case ZYDIS_REGISTER_X87TAG:
      return kOtherState;
    default:
      return kNoRegister;
  }
}

bool IsVectorRegister(ZydisRegister reg) {
  const ZydisRegisterClass c = ZydisRegisterGetClass(reg);
  return c == ZYDIS_REGCLASS_XMM || c == ZYDIS_REGCLASS_YMM || c == ZYDIS_REGCLASS_ZMM;
}

void SetStep(const RawInstruction& raw, LoopInstruction* out) {
  const auto visible = raw.visible();
  if (visible.empty() || visible[0].type != ZYDIS_OPERAND_TYPE_REGISTER || visible[0].size != 64)
    return;
  const int destination = RegisterNumber(visible[0].reg.value);
  if (destination < 0 || destination >= kVectorRegisters) return;
  const bool immediate = visible.size() == 2 && visible[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
  switch (raw.instruction.mnemonic) {
    case ZYDIS_MNEMONIC_INC:
    case ZYDIS_MNEMONIC_DEC:
      out->step.by = raw.instruction.mnemonic == ZYDIS_MNEMONIC_INC ? 1 : -1;
      break;
    case ZYDIS_MNEMONIC_ADD:
      if (!immediate) return;
      out->step.by = visible[1].imm.value.s;
      break;
    case ZYDIS_MNEMONIC_SUB:
      if (!immediate || visible[1].imm.value.s == INT64_MIN) return;
      out->step.by = -visible[1].imm.value.s;
      break;
    case ZYDIS_MNEMONIC_MOV:
      if (visible[1].type != ZYDIS_OPERAND_TYPE_REGISTER) return;
      out->step.source = RegisterNumber(visible[1].reg.value);
      return;
    case ZYDIS_MNEMONIC_LEA:
      // By addresses of 32 bits the upper half of the register goes.
      if (visible[1].mem.index != ZYDIS_REGISTER_NONE || raw.instruction.address_width != 64)
        return;
      out->step.source = RegisterNumber(visible[1].mem.base);
      out->step.by = visible[1].mem.disp.value;
      return;
    default:
      return;
  }
  out->step.source = destination;
}

void SetOperands(const RawInstruction& raw, LoopInstruction* out) {
  const ZydisDecodedInstruction& i = raw.instruction;
  if (i.mnemonic == ZYDIS_MNEMONIC_NOP || i.meta.category == ZYDIS_CATEGORY_WIDENOP) {
    out->traits = kNopTrait;
    return;
  }
  for (const ZydisDecodedOperand& o : raw.all())
    if (o.type == ZYDIS_OPERAND_TYPE_MEMORY) AddMemory(i, o, out);
  for (const ZydisDecodedOperand& o : raw.all())
    if (o.type == ZYDIS_OPERAND_TYPE_REGISTER) AddRegister(i, o, out);
  if (i.operand_count_visible > 0 && raw.operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER) {
    out->destination = RegisterNumber(raw.operands[0].reg.value);
    out->destination_bytes = static_cast<uint16_t>(raw.operands[0].size / 8);
  }
  if (i.operand_count_visible == 2 && raw.operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
      raw.operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
    out->immediate = raw.operands[1].imm.value.s;
  AddMemoryMask(raw, out);
  SetDataWidth(raw, out);
  DropIdiomReads(raw, out);
  AddFlags(i, out);
}

}  // namespace perfd::agent
