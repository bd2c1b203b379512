#include "agent/variant/patch_plan.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "agent/variant/flow/edges.h"
#include "agent/variant/flow/leaf_calls.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

absl::Status CheckCovered(const LoopCode& loop, uint32_t at, uint64_t next) {
  if (at >= loop.instructions.size() || loop.instructions[at].address != next) {
    return Refuse(loop.instructions[loop.entry],
                  "the loop's bytes end before the five that a jump needs");
  }
  if (loop.instructions[at].flow == LoopFlow::kCall)
    return Refuse(loop.instructions[at], "calls from under the jump at the loop's header");
  return absl::OkStatus();
}

bool InFunction(const LoopCode& loop, uint64_t address) {
  return std::any_of(loop.function.begin(), loop.function.end(), [address](const CodeRange& part) {
    return address >= part.low && address <= part.high;
  });
}

// A leaf that is left returns behind its call.
bool LeavesFunction(const LoopCode& loop) {
  for (const std::vector<uint64_t>& exits : loop.exits) {
    for (uint64_t exit : exits)
      if (!InFunction(loop, exit) && !LeavesLeaf(loop, exit)) return true;
  }
  return false;
}

// Code outside the function (a part of it that nothing names, a handler of what a call on a detour throws) may come back to any
// instruction of the loop. To one under the jump it must not.
absl::Status CheckFarBranches(const LoopCode& loop) {
  const LoopInstruction& header = loop.instructions[loop.entry];
  if (!NeedsFarBranches(loop)) return absl::OkStatus();
  if (!loop.far_branches)
    return Refuse(header, "leaves the function, and what it leads to may come back under the jump");
  if (loop.far_branches->empty()) return absl::OkStatus();
  return Refuse(
      header, absl::StrCat(
                  "0x", absl::Hex((RuntimeAddress(loop.far_branches->front()) - loop.bias).value()),
                  " leads under the jump at the loop's header"));
}

}  // namespace

bool NeedsFarBranches(const LoopCode& loop) {
  const bool one_covered = loop.instructions[loop.entry].length >= kJumpBytes;
  return !one_covered && (LeavesFunction(loop) || !loop.excluded.ranges.empty());
}

absl::StatusOr<PatchPlan> PlanPatch(const LoopCode& loop) {
  PatchPlan plan;
  plan.address = loop.header;
  const uint64_t end = loop.header + kJumpBytes;
  uint64_t next = loop.header;
  for (uint32_t at = loop.entry; next < end; ++at) {
    RETURN_IF_ERROR(CheckCovered(loop, at, next));
    const LoopInstruction& i = loop.instructions[at];
    plan.covered.push_back({i.address, i.length});
    for (uint64_t b = 0; b < i.length && next + b < end; ++b)
      plan.original[next + b - loop.header] = i.bytes[b];
    next = i.end();
  }
  plan.covered_end = next;
  RETURN_IF_ERROR(CheckFarBranches(loop));
  for (const LoopInstruction& i : loop.instructions) {
    const bool jumps = i.flow == LoopFlow::kBranch || i.flow == LoopFlow::kJump;
    if (jumps && i.target > loop.header && i.target < end)
      return Refuse(i, "leads into the five bytes of the jump at the loop's header");
  }
  return plan;
}

absl::StatusOr<std::array<uint8_t, kJumpBytes>> PatchPlan::Jump(uint64_t target) const {
  const auto distance = static_cast<int64_t>(target - (address + kJumpBytes));
  if (distance < std::numeric_limits<int32_t>::min() ||
      distance > std::numeric_limits<int32_t>::max()) {
    return absl::OutOfRangeError(
        absl::StrCat("0x", absl::Hex(target), " is more than 2 GiB from 0x", absl::Hex(address)));
  }
  std::array<uint8_t, kJumpBytes> jump = {0xe9};
  for (int i = 0; i < 4; ++i)
    jump[static_cast<size_t>(i) + 1] =
        static_cast<uint8_t>(static_cast<uint64_t>(distance) >> (8 * i));
  return jump;
}

}  // namespace perfd::agent
