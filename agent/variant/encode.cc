#include "agent/variant/encode.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/variant/decode.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

struct Request {
  ZydisEncoderRequest request;
  ZydisDecodedInstruction decoded;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  int memory = -1;  // index of the memory operand in request.operands
};

absl::Status NoForm(const LoopInstruction& i, absl::string_view what) {
  return absl::UnimplementedError(
      absl::StrCat("0x", absl::Hex(i.listed.value()), " `", i.text, "`: ", what));
}

absl::StatusOr<Request> Open(const LoopInstruction& i) {
  Request r;
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, i.code().data(), i.code().size(), &r.decoded,
                                           r.operands)) ||
      !ZYAN_SUCCESS(ZydisEncoderDecodedInstructionToEncoderRequest(
          &r.decoded, r.operands, r.decoded.operand_count_visible, &r.request))) {
    return NoForm(i, "cannot be taken apart");
  }
  for (int n = 0; n < r.request.operand_count; ++n)
    if (r.request.operands[n].type == ZYDIS_OPERAND_TYPE_MEMORY) r.memory = n;
  return r;
}

absl::StatusOr<Encoded> Close(const LoopInstruction& i, const ZydisEncoderRequest& request) {
  std::array<uint8_t, ZYDIS_MAX_INSTRUCTION_LENGTH> bytes;
  ZyanUSize length = bytes.size();
  if (!ZYAN_SUCCESS(ZydisEncoderEncodeInstruction(&request, bytes.data(), &length)))
    return NoForm(i, "the changed form cannot be encoded");
  const auto encoded = DecodeLoopInstruction(std::span(bytes).first(length), i.address);
  if (!encoded || encoded->length != length) return NoForm(i, "the changed form does not decode");
  Encoded code;
  code.bytes.assign(bytes.begin(), bytes.begin() + static_cast<int64_t>(length));
  code.displacement_at = encoded->displacement_at;
  if (code.displacement_at == 0 || !i.memory) return code;
  code.target = i.memory->target;
  const uint64_t distance = code.target - (i.address + length);
  for (size_t n = 0; n < 4; ++n)
    code.bytes[code.displacement_at + n] = static_cast<uint8_t>(distance >> (8 * n));
  return code;
}

// MOV between RAX and an absolute address would get the form without ModRM, with a prefix for 32-bit addresses that
// stalls the decoder. Source: Intel SDM vol. 2, MOV A0-A3; ModRM and SIB tables 2-2 and 2-3.
Encoded WithoutMoffs(Encoded code) {
  constexpr std::array<uint8_t, 4> kModRmForms = {0x8a, 0x8b, 0x88, 0x89};
  size_t opcode = 0;
  bool narrow = false;
  for (; opcode + 5 < code.bytes.size(); ++opcode) {
    const uint8_t b = code.bytes[opcode];
    narrow = narrow || b == 0x67;
    if (b < 0x65 && (b & 0xf0) != 0x40) break;
    if (b > 0x67) break;
  }
  const bool moffs = (code.bytes[opcode] & 0xfc) == 0xa0;
  if (!narrow || !moffs || opcode + 5 != code.bytes.size()) return code;
  const uint8_t form = kModRmForms[code.bytes[opcode] & 3u];
  std::vector<uint8_t> bytes;
  for (size_t n = 0; n < opcode; ++n)
    if (code.bytes[n] != 0x67) bytes.push_back(code.bytes[n]);
  bytes.insert(bytes.end(), {form, 0x04, 0x25});
  bytes.insert(bytes.end(), code.bytes.end() - 4, code.bytes.end());
  code.bytes = std::move(bytes);
  return code;
}

ZydisRegister VectorRegister(int number, int bytes) {
  const auto id = static_cast<ZyanU8>(number - kVectorRegisters);
  if (bytes > 32) return ZydisRegisterEncode(ZYDIS_REGCLASS_ZMM, id);
  if (bytes > 16) return ZydisRegisterEncode(ZYDIS_REGCLASS_YMM, id);
  return ZydisRegisterEncode(ZYDIS_REGCLASS_XMM, id);
}

ZydisRegister GeneralRegister(int number, int bytes) {
  const auto id = static_cast<ZyanU8>(number);
  if (bytes == 8) return ZydisRegisterEncode(ZYDIS_REGCLASS_GPR64, id);
  if (bytes == 4) return ZydisRegisterEncode(ZYDIS_REGCLASS_GPR32, id);
  if (bytes == 2) return ZydisRegisterEncode(ZYDIS_REGCLASS_GPR16, id);
  // Low bytes of all sixteen; ids 4 to 7 of Zydis are AH to BH.
  return ZydisRegisterEncode(ZYDIS_REGCLASS_GPR8, static_cast<ZyanU8>(id < 4 ? id : id + 4));
}

ZydisRegister RegisterFor(int number, int bytes) {
  if (number < kVectorRegisters) return GeneralRegister(number, bytes);
  if (number < kMaskRegisters) return VectorRegister(number, bytes);
  return ZydisRegisterEncode(ZYDIS_REGCLASS_MASK, static_cast<ZyanU8>(number - kMaskRegisters));
}

ZydisEncoderOperand RegisterOperand(ZydisRegister reg) {
  ZydisEncoderOperand operand{};
  operand.type = ZYDIS_OPERAND_TYPE_REGISTER;
  operand.reg.value = reg;
  return operand;
}

ZydisEncoderOperand ImmediateOperand(uint64_t value) {
  ZydisEncoderOperand operand{};
  operand.type = ZYDIS_OPERAND_TYPE_IMMEDIATE;
  operand.imm.u = value;
  return operand;
}

ZydisEncoderOperand BlockOperand(uint32_t offset, uint16_t bytes) {
  ZydisEncoderOperand operand{};
  operand.type = ZYDIS_OPERAND_TYPE_MEMORY;
  operand.mem.displacement = offset;
  operand.mem.size = bytes;
  return operand;
}

void PointToBlock(ZydisEncoderRequest* request) {
  request->prefixes &= ~ZydisInstructionAttributes{ZYDIS_ATTRIB_HAS_SEGMENT};
  request->prefixes |= ZYDIS_ATTRIB_HAS_SEGMENT_GS;
}

ZydisEncoderRequest Fresh(ZydisMnemonic mnemonic, std::initializer_list<ZydisEncoderOperand> list) {
  ZydisEncoderRequest request{};
  request.machine_mode = ZYDIS_MACHINE_MODE_LONG_64;
  request.mnemonic = mnemonic;
  for (const ZydisEncoderOperand& o : list) request.operands[request.operand_count++] = o;
  return request;
}

// Floating single, floating double or integer: the family whose load has the same length.
ZydisMnemonic WideLoad(const LoopInstruction& i) {
  const bool vector_form = i.Is(kVex | kEvex);
  const absl::string_view name = i.mnemonic;
  if (absl::EndsWith(name, "ps"))
    return vector_form ? ZYDIS_MNEMONIC_VMOVUPS : ZYDIS_MNEMONIC_MOVUPS;
  if (absl::EndsWith(name, "pd") || i.Is(kEvex))
    return vector_form ? ZYDIS_MNEMONIC_VMOVUPD : ZYDIS_MNEMONIC_MOVUPD;
  return vector_form ? ZYDIS_MNEMONIC_VMOVDQU : ZYDIS_MNEMONIC_MOVDQU;
}

ZydisMnemonic VectorLoad(const LoopInstruction& i, int bytes, bool repeat) {
  const bool vector_form = i.Is(kVex | kEvex);
  if (repeat && bytes == 4) return ZYDIS_MNEMONIC_VBROADCASTSS;
  if (repeat && bytes == 8 && i.destination_bytes > 16) return ZYDIS_MNEMONIC_VBROADCASTSD;
  if (bytes == 4) return vector_form ? ZYDIS_MNEMONIC_VMOVSS : ZYDIS_MNEMONIC_MOVSS;
  if (bytes == 8) return vector_form ? ZYDIS_MNEMONIC_VMOVSD : ZYDIS_MNEMONIC_MOVSD;
  if (bytes == 16 || bytes == 32 || bytes == 64) return WideLoad(i);
  return ZYDIS_MNEMONIC_INVALID;
}

// The encoder wants a mask in every EVEX form; K0 is none.
ZydisEncoderOperand MaskOperand(int mask) {
  return RegisterOperand(
      ZydisRegisterEncode(ZYDIS_REGCLASS_MASK, static_cast<ZyanU8>(std::max(0, mask))));
}

void InsertMask(int mask, ZydisEncoderRequest* request) {
  for (int n = request->operand_count; n > 1; --n) request->operands[n] = request->operands[n - 1];
  request->operands[1] = MaskOperand(mask);
  ++request->operand_count;
  request->allowed_encodings = ZYDIS_ENCODABLE_ENCODING_EVEX;
}

absl::StatusOr<ZydisEncoderRequest> GeneralLoad(const LoopInstruction& i, int number,
                                                const ZydisEncoderOperand& source, int bytes) {
  if (bytes == 4 || bytes == 8) {
    return Fresh(ZYDIS_MNEMONIC_MOV, {RegisterOperand(GeneralRegister(number, bytes)), source});
  }
  if (bytes == 1 || bytes == 2)
    return Fresh(ZYDIS_MNEMONIC_MOVZX, {RegisterOperand(GeneralRegister(number, 4)), source});
  return NoForm(i, absl::StrCat("no load of ", bytes, " bytes into a general register"));
}

absl::StatusOr<ZydisEncoderRequest> LoadRequest(const LoopInstruction& i, const Request& from,
                                                int number, ZydisEncoderOperand source) {
  const int bytes = i.memory->bytes;
  if (number < kVectorRegisters) return GeneralLoad(i, number, source, bytes);
  const bool repeat = i.Is(kBroadcasts);
  const ZydisMnemonic mnemonic = VectorLoad(i, bytes, repeat);
  if (mnemonic == ZYDIS_MNEMONIC_INVALID || number >= kMaskRegisters)
    return NoForm(i, absl::StrCat("no plain load of ", bytes, " bytes"));
  const int width = repeat ? i.destination_bytes : bytes;
  ZydisEncoderRequest request =
      Fresh(mnemonic, {RegisterOperand(VectorRegister(number, width)), source});
  if (i.Is(kEvex)) {
    InsertMask(i.mask, &request);
    // In place of a store it loads into a dead register, whose old value it must not wait for.
    if (i.mask > 0)
      request.evex.zeroing_mask = i.memory->writes ? ZYAN_TRUE : from.request.evex.zeroing_mask;
  }
  return request;
}

// A non-temporal access would push its line out of the cache.
void MakeTemporal(const LoopInstruction& i, ZydisEncoderRequest* request) {
  if (!i.Is(kVectorOp)) {
    request->mnemonic = ZYDIS_MNEMONIC_MOV;
    return;
  }
  request->mnemonic = i.Is(kVex | kEvex) ? ZYDIS_MNEMONIC_VMOVUPS : ZYDIS_MNEMONIC_MOVUPS;
  if (i.Is(kEvex)) InsertMask(0, request);
}

int Numbered(ZydisRegister reg) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  // NOLINTNEXTLINE(bugprone-signed-char-misuse): -1 where it has none
  const int id = ZydisRegisterGetId(whole);
  switch (ZydisRegisterGetClass(whole)) {
    case ZYDIS_REGCLASS_GPR64:
      return id;
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM:
      return kVectorRegisters + id;
    default:
      return kNoRegister;
  }
}

absl::Status NeedMemory(const LoopInstruction& i, const Request& r) {
  if (r.memory < 0 || !i.memory) return NoForm(i, "has no memory operand");
  if (i.memory->vector_index) return NoForm(i, "has a vector of addresses");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Encoded> EncodeToBlock(const LoopInstruction& i, uint32_t offset, int index) {
  ASSIGN_OR_RETURN(Request r, Open(i));
  RETURN_IF_ERROR(NeedMemory(i, r));
  ZydisEncoderOperand& operand = r.request.operands[r.memory];
  operand = BlockOperand(offset, operand.mem.size);
  if (index != kNoRegister) {
    operand.mem.index = GeneralRegister(index, 8);
    operand.mem.scale = static_cast<ZyanU8>(index == i.memory->index ? i.memory->scale : 1);
  }
  if (i.Is(kNonTemporal)) MakeTemporal(i, &r.request);
  PointToBlock(&r.request);
  ASSIGN_OR_RETURN(Encoded code, Close(i, r.request));
  return WithoutMoffs(std::move(code));
}

absl::StatusOr<Encoded> EncodeToRegister(const LoopInstruction& i, int number) {
  ASSIGN_OR_RETURN(Request r, Open(i));
  RETURN_IF_ERROR(NeedMemory(i, r));
  const int bytes = i.Is(kBroadcasts) ? i.destination_bytes : i.memory->bytes;
  r.request.operands[r.memory] = RegisterOperand(RegisterFor(number, bytes));
  r.request.prefixes &= ~ZydisInstructionAttributes{ZYDIS_ATTRIB_HAS_SEGMENT};
  r.request.evex.broadcast = ZYDIS_BROADCAST_MODE_INVALID;
  return Close(i, r.request);
}

absl::StatusOr<Encoded> EncodeLoad(const LoopInstruction& i, int number,
                                   std::optional<uint32_t> offset) {
  ASSIGN_OR_RETURN(Request r, Open(i));
  RETURN_IF_ERROR(NeedMemory(i, r));
  const ZydisEncoderOperand source =
      offset ? BlockOperand(*offset, i.memory->bytes) : r.request.operands[r.memory];
  ASSIGN_OR_RETURN(ZydisEncoderRequest request, LoadRequest(i, r, number, source));
  request.prefixes = r.request.prefixes & ZYDIS_ATTRIB_HAS_SEGMENT;
  if (offset) PointToBlock(&request);
  ASSIGN_OR_RETURN(Encoded code, Close(i, request));
  return WithoutMoffs(std::move(code));
}

absl::StatusOr<Encoded> EncodeControlled(const LoopInstruction& i, uint32_t offset) {
  ASSIGN_OR_RETURN(Request r, Open(i));
  if (i.Is(kRounds)) return NoForm(i, "rounds in its own way and so has no memory form");
  const int count = r.request.operand_count;
  const bool immediate =
      count > 0 && r.request.operands[count - 1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
  const int last = count - 1 - (immediate ? 1 : 0);
  if (last < 1) return NoForm(i, "has no source to control");
  // Scalars read one element; everything else the width of the destination.
  const bool is_double = absl::EndsWith(i.mnemonic, "sd");
  const bool is_single = absl::EndsWith(i.mnemonic, "ss");
  const int bytes = is_double ? 8 : is_single ? 4 : i.destination_bytes;
  r.request.operands[last] = BlockOperand(offset, static_cast<uint16_t>(bytes));
  r.request.evex.broadcast = ZYDIS_BROADCAST_MODE_INVALID;
  const bool three = last >= 2 &&
                     r.request.operands[last - 1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
                     Numbered(r.request.operands[last - 1].reg.value) != kNoRegister;
  if (three) r.request.operands[last - 1] = r.request.operands[0];
  PointToBlock(&r.request);
  return Close(i, r.request);
}

absl::StatusOr<Encoded> EncodeFill(const LoopInstruction& i, uint32_t offset) {
  const int bytes = std::max<int>(16, i.destination_bytes);
  const bool vector_form = i.Is(kVex | kEvex);
  const ZydisMnemonic mnemonic = vector_form ? ZYDIS_MNEMONIC_VMOVUPS : ZYDIS_MNEMONIC_MOVUPS;
  ZydisEncoderRequest request =
      Fresh(mnemonic, {RegisterOperand(VectorRegister(i.destination, bytes)),
                       BlockOperand(offset, static_cast<uint16_t>(bytes))});
  PointToBlock(&request);
  if (i.Is(kEvex)) InsertMask(0, &request);
  return Close(i, request);
}

absl::StatusOr<Encoded> EncodeZero(const LoopInstruction& i, int number, bool keep_flags) {
  if (number < kVectorRegisters) {
    const ZydisEncoderOperand reg = RegisterOperand(GeneralRegister(number, 4));
    if (keep_flags) return Close(i, Fresh(ZYDIS_MNEMONIC_MOV, {reg, ImmediateOperand(0)}));
    return Close(i, Fresh(ZYDIS_MNEMONIC_XOR, {reg, reg}));
  }
  const ZydisEncoderOperand whole = RegisterOperand(RegisterFor(number, 16));
  if (number >= kMaskRegisters) return Close(i, Fresh(ZYDIS_MNEMONIC_KXORW, {whole, whole, whole}));
  const int id = number - kVectorRegisters;
  if (id >= 16) {
    const ZydisEncoderOperand wide = RegisterOperand(RegisterFor(number, 64));
    ZydisEncoderRequest request = Fresh(ZYDIS_MNEMONIC_VPXORD, {wide, wide, wide});
    InsertMask(0, &request);
    return Close(i, request);
  }
  if (!i.Is(kVex | kEvex)) return Close(i, Fresh(ZYDIS_MNEMONIC_XORPS, {whole, whole}));
  // Equal low sources keep the short VEX prefix and are still a zero idiom.
  const ZydisEncoderOperand source =
      id < 8 ? whole : RegisterOperand(RegisterFor(kVectorRegisters, 16));
  return Close(i, Fresh(ZYDIS_MNEMONIC_VXORPS, {whole, source, source}));
}

absl::StatusOr<Encoded> EncodePrefetch(const LoopInstruction& i) {
  ASSIGN_OR_RETURN(Request r, Open(i));
  RETURN_IF_ERROR(NeedMemory(i, r));
  ZydisEncoderOperand operand = r.request.operands[r.memory];
  operand.mem.size = 1;
  ZydisEncoderRequest request = Fresh(ZYDIS_MNEMONIC_PREFETCHT0, {operand});
  request.prefixes = r.request.prefixes & ZYDIS_ATTRIB_HAS_SEGMENT;
  return Close(i, request);
}

absl::StatusOr<Encoded> EncodeCompare(const LoopInstruction& i) {
  ASSIGN_OR_RETURN(Request r, Open(i));
  RETURN_IF_ERROR(NeedMemory(i, r));
  if (i.memory->bytes > 8) return NoForm(i, "is too wide to compare");
  ZydisEncoderRequest request =
      Fresh(ZYDIS_MNEMONIC_CMP, {r.request.operands[r.memory], ImmediateOperand(0)});
  request.prefixes = r.request.prefixes & ZYDIS_ATTRIB_HAS_SEGMENT;
  return Close(i, request);
}

absl::StatusOr<Encoded> EncodeLea(const LoopInstruction& i, int number) {
  ASSIGN_OR_RETURN(Request r, Open(i));
  RETURN_IF_ERROR(NeedMemory(i, r));
  ZydisEncoderOperand operand = r.request.operands[r.memory];
  operand.mem.size = 8;
  return Close(i,
               Fresh(ZYDIS_MNEMONIC_LEA, {RegisterOperand(GeneralRegister(number, 8)), operand}));
}

absl::StatusOr<Encoded> EncodeInFrame(const LoopInstruction& i, int64_t depth) {
  const bool push = i.mnemonic == "push";
  const bool copy = i.mnemonic == "mov" && i.step.source == kStackPointer;
  if (push || copy || i.mnemonic == "pop") {
    constexpr int kWord = 8;
    ZydisEncoderOperand place{};
    place.type = ZYDIS_OPERAND_TYPE_MEMORY;
    place.mem.base = ZYDIS_REGISTER_RSP;
    place.mem.displacement = -depth - (push ? kWord : 0);
    place.mem.size = kWord;
    const ZydisEncoderOperand reg = RegisterOperand(GeneralRegister(i.destination, kWord));
    if (push) return Close(i, Fresh(ZYDIS_MNEMONIC_MOV, {place, reg}));
    return Close(i, Fresh(copy ? ZYDIS_MNEMONIC_LEA : ZYDIS_MNEMONIC_MOV, {reg, place}));
  }
  ASSIGN_OR_RETURN(Request r, Open(i));
  const auto operands = std::span(r.request.operands).first(r.request.operand_count);
  const bool as_value = std::any_of(operands.begin(), operands.end(), [](const auto& operand) {
    return operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
           ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operand.reg.value) ==
               ZYDIS_REGISTER_RSP;
  });
  if (as_value || r.memory < 0 || r.request.operands[r.memory].mem.base != ZYDIS_REGISTER_RSP)
    return NoForm(i, "uses the stack pointer as a value");
  r.request.operands[r.memory].mem.displacement -= depth;
  return Close(i, r.request);
}

absl::StatusOr<Encoded> EncodeSpill(const LoopInstruction& i, int number, int bytes,
                                    uint32_t offset) {
  ZydisEncoderRequest request =
      Fresh(ZYDIS_MNEMONIC_VMOVUPS, {BlockOperand(offset, static_cast<uint16_t>(bytes)),
                                     RegisterOperand(VectorRegister(number, bytes))});
  PointToBlock(&request);
  if (bytes == 64 || number >= kVectorRegisters + 16) InsertMask(0, &request);
  return Close(i, request);
}

int OtherSource(const LoopInstruction& i) {
  const absl::StatusOr<Request> r = Open(i);
  if (!r.ok()) return kNoRegister;
  int destination = kNoRegister;
  for (int n = 0; n < r->decoded.operand_count_visible; ++n) {
    const ZydisDecodedOperand& o = r->operands[n];
    const bool reads = (o.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
    if (o.type != ZYDIS_OPERAND_TYPE_REGISTER || !reads) continue;
    const int number = Numbered(o.reg.value);
    if (number == kNoRegister) continue;
    if (n != 0) return number;
    destination = number;
  }
  return destination;
}

}  // namespace perfd::agent
