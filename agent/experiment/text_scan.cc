#include "agent/experiment/text_scan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/injection.h"
#include "agent/variant/flow/far_branches.h"
#include "agent/variant/flow/leaf_calls.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kPiece = 1u << 20;
constexpr uint64_t kLongestText = 1u << 30;

bool IsFixed(const MapEntry* map) {
  return map != nullptr && map->readable && !map->writable && !map->shared && map->inode != 0;
}

// Where a word of the linker's leads, if that is the code of a file. One that is not bound yet leads back to what binds it.
ImportSlot ReadSlot(uint64_t address, const Memory& memory, const std::vector<MapEntry>& maps) {
  ImportSlot slot{.address = address, .module = ""};
  std::array<uint8_t, sizeof(slot.value)> word{};
  uint64_t value = 0;
  if (!memory.Read(address, word).ok()) return slot;
  memcpy(&value, word.data(), word.size());
  const MapEntry* map = FindMapping(maps, value);
  if (!IsFixed(map) || !map->executable) return slot;
  const auto first = std::find_if(maps.begin(), maps.end(), [map](const MapEntry& other) {
    return other.path == map->path && other.inode == map->inode && other.file_offset == 0;
  });
  slot.value = value;
  if (first != maps.end()) slot.bias = LoadBias(first->start, 0);
  slot.module = map->path.substr(map->path.rfind('/') + 1);
  return slot;
}

Constant ReadConstant(const CodeRange& range, const Memory& memory,
                      const std::vector<MapEntry>& maps) {
  const MapEntry* map = FindMapping(maps, range.low);
  if (!IsFixed(map) || range.high > map->end) return {range, {}};
  auto bytes = memory.Read(range.low, range.high - range.low);
  return {range, bytes.ok() ? *std::move(bytes) : std::vector<uint8_t>()};
}

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

void ReadCalledCode(const Memory& memory, LoopBytes* bytes) {
  constexpr size_t kMostBytes = 4096;  // of one function
  constexpr int kMostRounds = 16;      // each follows one more jump into what was not read
  std::vector<MapEntry> maps;
  for (int round = 0; round < kMostRounds; ++round) {
    const WantedCode wanted = WantedBy(*bytes);
    if (wanted.empty()) return;
    if (maps.empty()) maps = ProcFs().Maps(memory.pid()).value_or(std::vector<MapEntry>());
    for (const uint64_t address : wanted.text) {
      std::vector<uint8_t> text(kMostBytes);
      text.resize(memory.ReadSome(address, text));
      bytes->called.text.push_back({address, std::move(text)});
    }
    for (const uint64_t address : wanted.slots)
      bytes->called.slots.push_back(ReadSlot(address, memory, maps));
    for (const CodeRange& range : wanted.constants)
      bytes->called.constants.push_back(ReadConstant(range, memory, maps));
  }
}

}  // namespace perfd::agent
