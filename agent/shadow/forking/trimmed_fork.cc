#include "agent/shadow/forking/trimmed_fork.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/shadow/protocol.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kHugePage = 2 << 20;
constexpr uint64_t kStackBytes = 8 << 20;        // of a stack, or of thread-local data
constexpr uint64_t kGuessedPointers = 4;         // of a thread, into memory far from each other
constexpr uint64_t kLeastBytes = 2 * kHugePage;  // of a range: less is not worth a call
// Allowed in VmFlags of what is left out. Anything else (locked, userfaultfd, merging, hugetlb, ...) stays as it is.
constexpr const char* kPlainFlags[] = {"rd", "wr", "mr", "mw", "me", "ac",
                                       "nr", "hg", "nh", "sd", "dd"};

uint64_t Down(uint64_t address) {
  return address & ~(kHugePage - 1);
}
uint64_t Up(uint64_t address) {
  return address > UINT64_MAX - kHugePage ? UINT64_MAX : Down(address + kHugePage - 1);
}
uint64_t Less(uint64_t a, uint64_t b) {
  return a - std::min(a, b);
}
uint64_t More(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

bool IsPrivateMemory(const MemoryArea& area) {
  const MapEntry& map = area.map;
  const bool anonymous =
      map.path.empty() || map.path == "[heap]" || absl::StartsWith(map.path, "[anon");
  return anonymous && map.inode == 0 && !map.shared;
}

bool MayBeLeftOut(const MemoryArea& area) {
  if (!IsPrivateMemory(area) || !area.map.readable || !area.map.writable || area.map.executable)
    return false;
  if (area.flags.empty() || area.map.end - area.map.start < kLeastBytes) return false;
  return std::all_of(area.flags.begin(), area.flags.end(), [](const std::string& flag) {
    return std::find(std::begin(kPlainFlags), std::end(kPlainFlags), flag) != std::end(kPlainFlags);
  });
}

uint64_t LongestRange(const Footprint& footprint) {
  uint64_t longest = std::max(kHugePage, footprint.around);
  for (const PcRange& range : footprint.ranges)
    longest = std::max(longest, Less(range.end, range.start));
  return longest;
}

bool Holds(const MapEntry& map, uint64_t address) {
  return address >= map.start && address < map.end;
}

// Since 6.7 Linux merges stacks with arrays next to them (MAP_STACK is VM_NOHUGEPAGE), so that a stack has no mapping of its own.
// In use is what lies above the stack pointer, up to the thread pointer where that is on the same memory; static thread-local
// data lies below the thread pointer.
void KeepStack(std::span<const MemoryArea> areas, const TeamPointers::Stack& stack,
               std::vector<PcRange>* kept) {
  const uint64_t sp = stack.stack_pointer, tp = stack.thread_pointer;
  kept->push_back({Less(sp, kHugePage), More(sp, kStackBytes)});
  kept->push_back({Less(tp, kStackBytes), More(tp, kHugePage)});
  const bool together = std::any_of(areas.begin(), areas.end(), [&](const MemoryArea& area) {
    return Holds(area.map, sp) && Holds(area.map, tp);
  });
  if (together) kept->push_back({std::min(sp, tp), std::max(sp, tp)});
}

// What must be kept, in 2 MB steps; sorted, disjoint.
std::vector<PcRange> Windows(std::span<const MemoryArea> areas, const Footprint& footprint,
                             const TeamPointers& team) {
  std::vector<PcRange> windows;
  for (const PcRange& range : footprint.ranges)
    windows.push_back({Less(range.start, kHugePage), More(range.end, kHugePage)});
  const uint64_t around = LongestRange(footprint);
  for (uint64_t pointer : team.registers)
    windows.push_back({Less(pointer, around), More(pointer, around)});
  for (const TeamPointers::Stack& stack : team.stacks) KeepStack(areas, stack, &windows);
  for (PcRange& window : windows) window = {Down(window.start), Up(window.end)};
  std::sort(windows.begin(), windows.end(),
            [](const PcRange& a, const PcRange& b) { return a.start < b.start; });
  std::vector<PcRange> merged;
  for (const PcRange& window : windows) {
    if (!merged.empty() && window.start <= merged.back().end)
      merged.back().end = std::max(merged.back().end, window.end);
    else
      merged.push_back(window);
  }
  return merged;
}

// The footprint without its margin, and the registers: what makes a whole mapping kept.
bool IsTouched(const MapEntry& map, const Footprint& footprint, const TeamPointers& team) {
  auto inside = [&](uint64_t address) { return Holds(map, address); };
  return std::any_of(footprint.ranges.begin(), footprint.ranges.end(),
                     [&](const PcRange& range) {
                       return range.start < map.end && map.start < range.end;
                     }) ||
         std::any_of(team.registers.begin(), team.registers.end(), inside);
}

struct Candidate {
  PcRange range;
  uint64_t small = 0, huge = 0;
};

// What lies between the windows, and how much of it is surely resident: as if all that is kept were.
void CutOut(const MemoryArea& area, const std::vector<PcRange>& windows,
            std::vector<Candidate>* out) {
  uint64_t at = area.map.start, dropped = 0;
  std::vector<PcRange> ranges;
  auto add = [&](uint64_t low, uint64_t high) {
    if (high < low || high - low < kLeastBytes) return;
    ranges.push_back({low, high});
    dropped += high - low;
  };
  for (const PcRange& window : windows) {
    if (window.end <= at || window.start >= area.map.end) continue;
    add(at, std::max(at, window.start));
    at = std::min(window.end, area.map.end);
  }
  add(at, area.map.end);
  const uint64_t kept = area.map.end - area.map.start - dropped;
  const uint64_t small = Less(Less(area.anonymous, area.huge), kept), huge = Less(area.huge, kept);
  for (const PcRange& range : ranges) {
    const double share =
        static_cast<double>(range.end - range.start) / static_cast<double>(dropped);
    out->push_back({range, static_cast<uint64_t>(share * static_cast<double>(small)),
                    static_cast<uint64_t>(share * static_cast<double>(huge))});
  }
}

}  // namespace

absl::Status JudgeTrim(std::span<const MemoryArea> areas, std::span<const OpenFile> files,
                       uint64_t pinned_bytes) {
  for (const MemoryArea& area : areas) {
    if (IsPrivateMemory(area) && area.HasFlag("dc"))
      return absl::FailedPreconditionError(
          "the program itself keeps memory from its forks (MADV_DONTFORK)");
  }
  for (const OpenFile& file : files) {
    for (absl::string_view device :
         {"/dev/infiniband/", "/dev/hfi1", "/dev/cxi", "/dev/ipath", "/dev/efa"}) {
      if (absl::StartsWith(file.target, device))
        return absl::FailedPreconditionError(absl::StrCat(
            "its network library may keep memory from forks at any time (", file.target, ")"));
    }
  }
  if (pinned_bytes > 0) return absl::FailedPreconditionError("it has pinned memory");
  return absl::OkStatus();
}

TrimmedFork ChooseTrim(std::span<const MemoryArea> areas, const Footprint& footprint,
                       const TeamPointers& team) {
  const std::vector<PcRange> windows = Windows(areas, footprint, team);
  std::vector<Candidate> candidates;
  for (const MemoryArea& area : areas) {
    if (!MayBeLeftOut(area)) continue;
    if (footprint.whole_areas && IsTouched(area.map, footprint, team)) continue;
    CutOut(area, windows, &candidates);
  }
  std::erase_if(candidates, [](const Candidate& c) { return c.small + c.huge == 0; });
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.small > b.small; });
  if (candidates.size() > kMaxTrims) candidates.resize(kMaxTrims);
  TrimmedFork trimmed_fork;
  for (const Candidate& candidate : candidates) {
    trimmed_fork.ranges.push_back(candidate.range);
    trimmed_fork.small_bytes += candidate.small;
    trimmed_fork.huge_bytes += candidate.huge;
  }
  return trimmed_fork;
}

TrimmedFork WithoutPointers(TrimmedFork trimmed_fork, const Footprint& footprint, int32_t team) {
  if (footprint.around == 0) return trimmed_fork;
  const auto threads = static_cast<uint64_t>(std::max(1, team));
  const uint64_t kept = threads * kGuessedPointers * 2 * std::max(kHugePage, footprint.around);
  const uint64_t small = std::min(trimmed_fork.small_bytes, kept);
  trimmed_fork.small_bytes -= small;
  trimmed_fork.huge_bytes -= std::min(trimmed_fork.huge_bytes, kept - small);
  return trimmed_fork;
}

std::vector<MemoryArea> StillThere(std::vector<MemoryArea> areas, std::span<const MapEntry> maps) {
  std::erase_if(areas, [&](const MemoryArea& area) {
    auto at =
        std::lower_bound(maps.begin(), maps.end(), area.map.start,
                         [](const MapEntry& map, uint64_t start) { return map.start < start; });
    return at == maps.end() || *at != area.map;
  });
  return areas;
}

MemoryFacts Trimmed(MemoryFacts facts, const TrimmedFork& trimmed_fork) {
  const uint64_t bytes = trimmed_fork.small_bytes + trimmed_fork.huge_bytes;
  facts.anonymous = Less(facts.anonymous, bytes);
  facts.private_dirty = Less(facts.private_dirty, bytes);
  facts.resident = Less(facts.resident, bytes);
  facts.huge = Less(facts.huge, trimmed_fork.huge_bytes);
  return facts;
}

}  // namespace perfd::agent
