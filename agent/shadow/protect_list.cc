#include "agent/shadow/protect_list.h"

#include <sys/mman.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/shadow/forking/preconditions.h"

namespace perfd::agent {

absl::StatusOr<std::vector<ProtectRange>> ProtectList(const std::vector<MapEntry>& maps,
                                                      const PcRange& region,
                                                      std::span<const ForkedDifferently> differs) {
  std::vector<ProtectRange> ranges;
  for (const MapEntry& map : maps) {
    const bool device = IsDevice(map);
    const bool shared = map.shared && map.writable;
    const bool ours = map.start >= region.start && map.end <= region.end;
    if (ours || (!device && !shared)) continue;
    const uint32_t protection = device ? PROT_NONE : PROT_READ;
    const auto why = static_cast<uint32_t>(device ? WhyProtected::kDevice : WhyProtected::kShared);
    if (!ranges.empty() && ranges.back().address + ranges.back().bytes == map.start &&
        ranges.back().protection == protection) {
      ranges.back().bytes += map.end - map.start;
    } else {
      ranges.push_back({map.start, map.end - map.start, protection, why});
    }
  }
  for (const auto& [range, why] : differs)
    ranges.push_back({range.start, range.end - range.start, PROT_NONE, static_cast<uint32_t>(why)});
  if (ranges.size() > kMaxProtects)
    return absl::ResourceExhaustedError(
        absl::StrCat(ranges.size(), " shared mappings; a shadow protects at most ", kMaxProtects));
  return ranges;
}

std::vector<RestoreRange> ClipRestores(const std::vector<MapEntry>& maps,
                                       const std::vector<RestoreRange>& ranges) {
  std::vector<RestoreRange> clipped;
  for (const RestoreRange& range : ranges) {
    const uint64_t end = range.address + range.bytes;
    for (const MapEntry& map : maps) {
      const uint64_t low = std::max(range.address, map.start), high = std::min(end, map.end);
      if (low >= high || map.shared || !map.writable || !map.readable) continue;
      clipped.push_back({low, high - low, range.owner, 0});
    }
  }
  return clipped;
}

// The page for old system calls lies above all that a process can map.
uint64_t MappedBytes(const std::vector<MapEntry>& maps) {
  uint64_t bytes = 0;
  for (const MapEntry& map : maps) {
    if (static_cast<int64_t>(map.end) > 0) bytes += map.end - map.start;
  }
  return bytes;
}

}  // namespace perfd::agent
