#include "agent/variant/flow/leaf_frame.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/variant/decode.h"
#include "agent/variant/encode.h"
#include "agent/variant/rewrite.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kWord = 8;

bool UsesStackPointer(const LoopInstruction& i) {
  return ((i.reads | i.writes | i.address_reads) & Bit(kStackPointer)) != 0;
}

bool MovesWord(const LoopInstruction& i) {
  return !i.memory && i.destination_bytes == kWord && i.destination >= 0 &&
         i.destination < kVectorRegisters && i.destination != kStackPointer;
}

bool OnlyMovesStackPointer(const LoopInstruction& i) {
  return i.destination == kStackPointer && i.step.source == kStackPointer;
}

absl::Status CheckPlace(const LoopInstruction& i, const std::vector<ReturnAddress>& returns) {
  if (!i.Accesses() || i.memory->base != kStackPointer) return absl::OkStatus();
  const int64_t low = i.memory->displacement;
  const int64_t high = low + i.memory->bytes;
  if (low < -kRedZone)
    return absl::FailedPreconditionError(
        absl::StrCat("it holds more than ", kRedZone, " bytes on the stack"));
  for (const ReturnAddress& address : returns) {
    if (low < -address.depth + kReturnAddressBytes && -address.depth < high)
      return absl::FailedPreconditionError("it touches a return address");
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<int64_t> Lowers(const LoopInstruction& i) {
  if ((i.writes & Bit(kStackPointer)) == 0) return 0;
  if (i.mnemonic == "push" && MovesWord(i)) return kWord;
  if (i.mnemonic == "pop" && MovesWord(i)) return -kWord;
  if (OnlyMovesStackPointer(i)) return -i.step.by;
  return std::nullopt;
}

absl::StatusOr<LoopInstruction> InFrame(const LoopInstruction& i, int64_t depth,
                                        const std::vector<ReturnAddress>& returns, LoadBias bias) {
  if (!UsesStackPointer(i)) return i;
  if (!Lowers(i)) return absl::FailedPreconditionError("where it moves the stack pointer to");
  std::vector<uint8_t> bytes;
  if (OnlyMovesStackPointer(i)) {
    AppendNops(1, &bytes);
  } else {
    ASSIGN_OR_RETURN(const Encoded code, EncodeInFrame(i, depth));
    bytes = code.bytes;
  }
  std::optional<LoopInstruction> moved = DecodeLoopInstruction(bytes, i.address, bias);
  if (!moved) return absl::InternalError(absl::StrCat("`", i.text, "` does not decode in a frame"));
  RETURN_IF_ERROR(CheckPlace(*moved, returns));
  moved->bytes = i.bytes;
  moved->length = i.length;
  moved->text = i.text;
  moved->in_copies = std::move(bytes);
  return *std::move(moved);
}

}  // namespace perfd::agent
