#include "daemon/report/inclusive.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace perfd::daemon {
namespace {

constexpr size_t kNone = SIZE_MAX;

std::string FunctionKey(const CodeLocation& location) {
  return absl::StrCat(static_cast<int>(location.category), "|", location.module_id, "|",
                      location.function_low, "|",
                      location.function_low == 0 ? location.function : "");
}

// A smaller depth makes a parent: headers from a hostile agent cannot form a ring.
bool MayHold(const LoopFacts& outer, const LoopFacts& inner) {
  return outer.depth < inner.depth;
}

bool Surrounds(const LoopFacts& outer, const LoopFacts& inner) {
  const auto holds = [&inner](const CodeRange& part) { return part.Contains(inner.header); };
  return MayHold(outer, inner) &&
         (holds({outer.low, outer.high}) ||
          std::any_of(outer.further_parts.begin(), outer.further_parts.end(), holds));
}

uint64_t Size(const LoopFacts& loop) {
  uint64_t size = loop.high - loop.low;
  for (const CodeRange& part : loop.further_parts) size += part.high - part.low;
  return size;
}

size_t FindParent(const std::vector<LocationTotals>& locations, const std::vector<size_t>& siblings,
                  const LoopFacts& loop) {
  if (loop.parent_header == 0) return kNone;
  size_t best = kNone;
  uint64_t best_size = UINT64_MAX;
  for (size_t i : siblings) {
    const LoopFacts& other = *locations[i].location.loop;
    if (other.header == loop.parent_header && MayHold(other, loop)) return i;
    if (Surrounds(other, loop) && Size(other) < best_size) {
      best = i;
      best_size = Size(other);
    }
  }
  return best;
}

}  // namespace

std::vector<InclusiveTime> InclusiveTimes(const std::vector<LocationTotals>& locations,
                                          const std::vector<InclusiveTime>& called) {
  std::vector<InclusiveTime> own;
  absl::flat_hash_map<std::string, std::vector<size_t>> functions;
  for (size_t i = 0; i < locations.size(); ++i) {
    own.push_back({locations[i].counts.cpu_ns, locations[i].counts.wall_ns});
    if (called.empty()) continue;
    own[i].cpu_ns += called[i].cpu_ns;
    own[i].wall_ns += called[i].wall_ns;
  }
  for (size_t i = 0; i < locations.size(); ++i) {
    if (locations[i].location.loop.has_value())
      functions[FunctionKey(locations[i].location)].push_back(i);
  }
  std::vector<size_t> parent(locations.size(), kNone);
  for (const auto& [key, loops] : functions) {
    for (size_t i : loops) parent[i] = FindParent(locations, loops, *locations[i].location.loop);
  }
  std::vector<InclusiveTime> inclusive = own;
  for (size_t i = 0; i < locations.size(); ++i) {
    for (size_t p = parent[i]; p != kNone; p = parent[p]) {
      inclusive[p].cpu_ns += own[i].cpu_ns;
      inclusive[p].wall_ns += own[i].wall_ns;
    }
  }
  return inclusive;
}

}  // namespace perfd::daemon
