#include "agent/variant/recovery/in_situ.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/variant/decode.h"
#include "agent/variant/flow/edges.h"
#include "agent/variant/thread_block.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr uint8_t kGsPrefix = 0x65;
constexpr int kMostPrefixes = 4;

// GS is the last segment prefix of an instruction that has it. Source: Intel SDM vol. 2, 2.1.1.
bool IsGs(const LoopInstruction& i) {
  for (int at = 0; at < std::min<int>(kMostPrefixes, i.length); ++at) {
    const uint8_t byte = i.bytes[static_cast<size_t>(at)];
    if (byte == kGsPrefix) return true;
    if (byte != 0x66 && byte != 0xf2 && byte != 0xf3 && byte != 0x67) return false;
  }
  return false;
}

// In the thread's own block, at a place that no register moves.
absl::Status CheckBlockAccess(const LoopInstruction& i) {
  const bool fixed = i.memory && i.memory->base == kNoRegister && i.memory->index == kNoRegister;
  const bool inside = fixed && i.memory->displacement >= 0 &&
                      i.memory->displacement + i.memory->bytes <= int64_t{kThreadBlockBytes};
  return inside ? absl::OkStatus() : Refuse(i, "touches GS memory outside the block");
}

bool SamePlace(const MemoryOperand& a, const MemoryOperand& b) {
  if (a.base != b.base || a.index != b.index || a.thread_local_segment != b.thread_local_segment)
    return false;
  if (a.vector_index != b.vector_index || a.index_bytes != b.index_bytes) return false;
  if (a.base == kInstructionPointer) return a.target == b.target;
  return a.displacement == b.displacement && (a.index == kNoRegister || a.scale == b.scale);
}

const LoopInstruction* OriginalOf(const LoopCode& loop, const CodeCopy& copy, uint64_t address) {
  uint64_t original = 0;
  for (const AddressPair& pair : copy.address_map) {
    if (pair.copy > address) break;
    original = pair.original;
  }
  const int at = InstructionAt(loop, original);
  return at < 0 ? nullptr : &loop.instructions[static_cast<size_t>(at)];
}

absl::Status CheckLoad(const LoopCode& loop, const CodeCopy& copy, const LoopInstruction& i) {
  const LoopInstruction* original = OriginalOf(loop, copy, i.address);
  const bool known = original != nullptr && original->Accesses() && i.memory.has_value();
  if (!known || !SamePlace(*i.memory, *original->memory) ||
      i.memory->bytes > original->memory->bytes || i.mask != original->mask ||
      i.memory->lane_mask != original->memory->lane_mask)
    return Refuse(i, "loads what the loop does not load here");
  return absl::OkStatus();
}

// `begins`: addresses of all instructions of the copy, ascending. What lies between them was not looked at.
absl::Status CheckFlow(const std::vector<uint64_t>& begins, const LoopInstruction& i,
                       uint64_t exit_stub) {
  if (i.flow == LoopFlow::kPlain) return absl::OkStatus();
  const bool jumps = i.flow == LoopFlow::kBranch || i.flow == LoopFlow::kJump;
  const bool inside = std::binary_search(begins.begin(), begins.end(), i.target);
  if (!jumps || (!inside && i.target != exit_stub)) return Refuse(i, "leads out of the copy");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<LoopInstruction>> DecodeAll(const CodeCopy& copy) {
  std::vector<LoopInstruction> all;
  const uint64_t end = copy.address + copy.bytes.size();
  for (uint64_t at = copy.address; at < end;) {
    std::optional<LoopInstruction> i =
        DecodeLoopInstruction(std::span(copy.bytes).subspan(at - copy.address), at);
    if (!i || i->length == 0)
      return absl::InternalError(absl::StrCat("no instruction at 0x", absl::Hex(at)));
    at = i->end();
    all.push_back(*std::move(i));
  }
  return all;
}

// Among what stands for `i` in the copy, which may have code of its own before it (counting, tracing), is `i` itself.
bool Keeps(const CodeCopy& copy, const LoopInstruction& i) {
  const auto pair =
      std::find_if(copy.address_map.begin(), copy.address_map.end(),
                   [&](const AddressPair& other) { return other.original == i.address; });
  if (pair == copy.address_map.end() || pair->copy < copy.address) return false;
  const uint64_t end = copy.address + copy.bytes.size();
  const uint64_t stop = std::next(pair) == copy.address_map.end() ? end : std::next(pair)->copy;
  for (uint64_t at = pair->copy; at < std::min(stop, end);) {
    const std::span<const uint8_t> rest = std::span(copy.bytes).subspan(at - copy.address);
    if (rest.size() >= i.length && std::equal(i.code().begin(), i.code().end(), rest.begin()))
      return true;
    const std::optional<FlowStep> step = DecodeFlow(rest, at);
    if (!step || step->length == 0) return false;
    at += step->length;
  }
  return false;
}

// What decides branches and addresses is there as it was: so the copy ends where the loop ends.
absl::Status CheckFixed(const LoopCode& loop, const CodeCopy& copy) {
  for (size_t n = 0; n < loop.instructions.size(); ++n) {
    const LoopInstruction& i = loop.instructions[n];
    if (!loop.roles[n].fixed() || i.flow != LoopFlow::kPlain || i.displacement_at != 0) continue;
    if (!Keeps(copy, i))
      return Refuse(i, "decides a branch or an address, and is not the same in the copy");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckInSitu(const LoopCode& loop, const CodeCopy& copy, uint64_t exit_stub) {
  RETURN_IF_ERROR(CheckFixed(loop, copy));
  ASSIGN_OR_RETURN(const std::vector<LoopInstruction> all, DecodeAll(copy));
  std::vector<uint64_t> begins;
  begins.reserve(all.size());
  for (const LoopInstruction& i : all) begins.push_back(i.address);
  for (const LoopInstruction& i : all) {
    RETURN_IF_ERROR(CheckFlow(begins, i, exit_stub));
    if (i.Is(kStringOp | kLocked)) return Refuse(i, "cannot run in place");
    const bool gs = IsGs(i);
    if (!gs && !i.refusal.empty()) return Refuse(i, i.refusal);
    if (gs && i.Accesses()) {
      RETURN_IF_ERROR(CheckBlockAccess(i));
      continue;
    }
    if (i.Is(kStores)) return Refuse(i, "stores");
    if (i.Is(kLoads)) RETURN_IF_ERROR(CheckLoad(loop, copy, i));
  }
  return absl::OkStatus();
}

}  // namespace perfd::agent
