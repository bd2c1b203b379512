#include "agent/experiment/text_scan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/injection.h"
#include "agent/variant/flow/far_branches.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kPiece = 1u << 20;
constexpr uint64_t kLongestText = 1u << 30;

}  // namespace

absl::StatusOr<std::vector<uint64_t>> FindFarBranches(const LoopCode& loop, const Memory& memory) {
  ASSIGN_OR_RETURN(const std::vector<MapEntry> maps, ProcFs().Maps(memory.pid()));
  const MapEntry* map = FindMapping(maps, loop.header);
  if (map == nullptr)
    return absl::NotFoundError(absl::StrCat("0x", absl::Hex(loop.header), " is not mapped"));
  if (map->end - map->start > kLongestText)
    return absl::ResourceExhaustedError("the module's text is longer than 1 GiB");
  const CodeRange under{loop.header + 1, loop.header + kJumpBytes};
  std::vector<uint64_t> found;
  for (uint64_t at = map->start; at < map->end; at += kPiece) {
    const uint64_t size = std::min(kPiece + kLongestBranch - 1, map->end - at);
    ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, memory.Read(at, size));
    for (uint64_t from : BranchesInto(bytes, at, under, loop.function))
      if (found.empty() || found.back() < from) found.push_back(from);
  }
  return found;
}

}  // namespace perfd::agent
