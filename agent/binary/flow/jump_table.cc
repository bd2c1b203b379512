#include "agent/binary/flow/jump_table.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace perfd::agent {
namespace {

constexpr size_t kBoundDistance = 24;  // instructions between the bound check and the jump
constexpr size_t kMaxCandidates = 8;   // table addresses tried per jump

// How many entries the check before the jump allows; nothing: no check was seen.
std::optional<uint64_t> EntryBound(std::span<const Instruction> path) {
  Clue branch = Clue::kNone;
  for (size_t i = 1; i < std::min(path.size(), kBoundDistance); ++i) {
    const Instruction& at = path[i];
    if (at.clue == Clue::kAbove || at.clue == Clue::kAboveOrEqual) branch = at.clue;
    if (at.clue == Clue::kMask && branch == Clue::kNone && at.immediate < kMaxTableEntries)
      return at.immediate + 1;
    if (at.clue != Clue::kCompare || branch == Clue::kNone) continue;
    return branch == Clue::kAbove ? at.immediate + 1 : at.immediate;
  }
  return std::nullopt;
}

uint64_t EntryTarget(std::span<const std::byte> bytes, uint64_t table, bool absolute) {
  if (absolute) {
    uint64_t address = 0;
    std::memcpy(&address, bytes.data(), sizeof address);
    return address;
  }
  int32_t offset = 0;
  std::memcpy(&offset, bytes.data(), sizeof offset);
  return table + static_cast<uint64_t>(int64_t{offset});
}

// With a bound every entry must be readable and at least one must be in the function; without one the table ends at the first entry that leaves the function.
std::vector<uint64_t> ReadTable(uint64_t table, bool absolute, std::optional<uint64_t> bound,
                                const TableScope& scope) {
  std::vector<uint64_t> targets;
  const size_t size = absolute ? sizeof(uint64_t) : sizeof(int32_t);
  const uint64_t count = bound.value_or(kMaxTableEntries);
  if (count == 0 || count > kMaxTableEntries) return {};
  for (uint64_t i = 0; i < count; ++i) {
    const auto bytes = (*scope.read)(table + i * size, size);
    const bool readable = bytes.size() == size;
    if (!readable && bound) return {};
    const uint64_t target = readable ? EntryTarget(bytes, table, absolute) : 0;
    const bool inside = readable && scope.function->PositionOf(target).has_value();
    if (inside) targets.push_back(target);
    if (!inside && !bound) break;
  }
  if (!bound && targets.size() < 2) return {};  // one fitting word may be chance
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  return targets;
}

}  // namespace

std::vector<uint64_t> FindJumpTable(std::span<const Instruction> path, const TableScope& scope) {
  if (path.empty() || path[0].flow != Flow::kIndirectJump) return {};
  const std::optional<uint64_t> bound = EntryBound(path);
  size_t candidates = 0;
  for (const Instruction& at : path) {
    const bool absolute = at.clue == Clue::kAbsoluteTable;
    if (!absolute && at.clue != Clue::kTableAddress) continue;
    std::vector<uint64_t> targets = ReadTable(at.reference, absolute, bound, scope);
    if (!targets.empty()) return targets;
    if (++candidates == kMaxCandidates) break;
  }
  return {};
}

}  // namespace perfd::agent
