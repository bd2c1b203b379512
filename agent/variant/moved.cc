#include "agent/variant/moved.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kAlignment = 64;

// The field of an instruction that counts from its own end.
struct RelativeField {
  size_t offset = 0;  // in the instruction
  int bits = 0;       // 0: it has none
  int64_t value = 0;
};

// Source: Intel SDM vol. 2, 2.2.1.6 (RIP-relative addressing); JMP, Jcc, CALL (rel8, rel32).
RelativeField RelativeFieldOf(const ZydisDecodedInstruction& i) {
  if ((i.attributes & ZYDIS_ATTRIB_IS_RELATIVE) == 0) return {};
  for (const auto& immediate : i.raw.imm) {
    if (immediate.is_relative)
      return {immediate.offset, immediate.size, static_cast<int64_t>(immediate.value.s)};
  }
  return {i.raw.disp.offset, i.raw.disp.size, i.raw.disp.value};
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> MovedBytes(const CodeCopy& copy, uint64_t shift) {
  if (shift % kAlignment != 0)
    return absl::InvalidArgumentError(absl::StrCat("a copy cannot be moved by ", shift, " bytes"));
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  std::vector<uint8_t> bytes = copy.bytes;
  for (size_t at = 0; at < bytes.size();) {
    ZydisDecodedInstruction i;
    const std::span<const uint8_t> rest = std::span(copy.bytes).subspan(at);
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeInstruction(&decoder, nullptr, rest.data(), rest.size(), &i)))
      return absl::InvalidArgumentError(
          absl::StrCat("no instruction at 0x", absl::Hex(copy.address + at)));
    const size_t begin = at;
    at += i.length;
    const RelativeField field = RelativeFieldOf(i);
    const uint64_t target = at + static_cast<uint64_t>(field.value);  // from the copy's own begin
    if (field.bits == 0 || target < bytes.size()) continue;
    const int64_t moved = field.value - static_cast<int64_t>(shift);
    if (field.bits != 32 || moved != static_cast<int32_t>(moved))
      return absl::OutOfRangeError(absl::StrCat("0x", absl::Hex(copy.address + target),
                                                " cannot be reached from so far away"));
    for (size_t k = 0; k < 4; ++k)
      bytes[begin + field.offset + k] =
          static_cast<uint8_t>(static_cast<uint64_t>(moved) >> (8 * k));
  }
  return bytes;
}

}  // namespace perfd::agent
