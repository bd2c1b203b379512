#include "daemon/aggregate/paths/called_parts.h"

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"

namespace perfd::daemon {

uint64_t CalledPart::Of(uint64_t time) const {
  return static_cast<uint64_t>(absl::uint128(time) * paths / all);
}

std::vector<CalledPart> CalledParts(const std::vector<WindowCall>& calls, uint64_t least_paths) {
  absl::flat_hash_map<uint32_t, uint64_t> all;
  for (const WindowCall& call : calls) all[call.location] += call.paths;
  std::vector<CalledPart> parts;
  for (const WindowCall& call : calls) {
    const uint64_t paths = all[call.location];
    if (call.loop.has_value() && paths >= least_paths)
      parts.push_back({call.location, *call.loop, call.paths, paths});
  }
  return parts;
}

}  // namespace perfd::daemon
