#include "agent/shadow/gaps.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMargin = 1 << 20;  // displacements count from the end of an instruction
constexpr uint64_t kReachBytes = (uint64_t{1} << 31) - kMargin;
constexpr uint64_t kGroupSpan = uint64_t{1} << 30;     // leaves half of the reach for the gap
constexpr uint64_t kDistance = 16 << 20;               // from what is there, where there is room
constexpr uint64_t kLowest = 1 << 20;                  // well above vm.mmap_min_addr
constexpr uint64_t kHighest = uint64_t{0x7fff} << 32;  // 47 bits, without the last pages

struct Gap {
  uint64_t low = 0;
  uint64_t high = 0;
  bool above_heap = false;
  bool below_stack = false;
};

std::vector<Gap> FreeRanges(std::span<const MapEntry> maps) {
  std::vector<Gap> gaps;
  uint64_t end = kLowest;
  bool heap = false;
  for (const MapEntry& map : maps) {
    // The vsyscall page is above everything a program maps.
    if (map.start >= kHighest) break;
    if (map.start > end) gaps.push_back({end, map.start, heap, map.path == "[stack]"});
    end = std::max(end, map.end);
    heap = map.path == "[heap]";
  }
  if (kHighest > end) gaps.push_back({end, kHighest, heap, false});
  return gaps;
}

uint64_t Down(uint64_t value) {
  return value & ~(kPage - 1);
}
uint64_t Up(uint64_t value) {
  return Down(value + kPage - 1);
}

}  // namespace

absl::StatusOr<std::vector<Reach>> GroupByReach(std::vector<Reach> spans, size_t most) {
  std::sort(spans.begin(), spans.end(),
            [](const Reach& a, const Reach& b) { return a.low < b.low; });
  std::vector<Reach> groups;
  for (const Reach& span : spans) {
    if (!groups.empty() &&
        std::max(span.high, groups.back().high) - groups.back().low <= kGroupSpan) {
      groups.back().high = std::max(groups.back().high, span.high);
    } else {
      groups.push_back(span);
    }
  }
  if (groups.size() > most) {
    return absl::FailedPreconditionError(absl::StrCat("the loops lie in ", groups.size(),
                                                      " distant places; at most ", most,
                                                      " are served at a time"));
  }
  return groups;
}

absl::StatusOr<uint64_t> FindGap(std::span<const MapEntry> maps, const Reach& reach,
                                 uint64_t bytes) {
  const uint64_t lowest = reach.high > kReachBytes ? Up(reach.high - kReachBytes) : 0;
  const uint64_t highest = Down(reach.low + kReachBytes);
  uint64_t best = 0, best_distance = ~uint64_t{0};
  for (const Gap& gap : FreeRanges(maps)) {
    // The stack grows downwards into the gap below it.
    const uint64_t gap_high =
        gap.below_stack && gap.high > gap.low + kGroupSpan ? gap.high - kGroupSpan : gap.high;
    const uint64_t low = std::max(gap.low, lowest), high = std::min(gap_high, highest);
    if (gap.below_stack && gap_high == gap.high) continue;
    if (high <= low || high - low < bytes) continue;
    // As far from the heap as possible, else a little below the next mapping.
    uint64_t place = Down(high - bytes);
    if (!gap.above_heap && high == gap.high && high - low >= bytes + kDistance) place -= kDistance;
    uint64_t distance = place < reach.low ? reach.low - place : place - reach.high;
    if (place > reach.high) distance += uint64_t{1} << 32;
    if (distance >= best_distance) continue;
    best = place;
    best_distance = distance;
  }
  if (best == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("no ", bytes >> 10, " KB of free addresses within 2 GiB of the loop at 0x",
                     absl::Hex(reach.low)));
  }
  return best;
}

}  // namespace perfd::agent
