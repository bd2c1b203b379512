#include "daemon/aggregate/recent_heat.h"

#include <vector>

#include "core/base/clock.h"
#include "daemon/aggregate/paths/called_parts.h"
#include "daemon/aggregate/row_time.h"

namespace perfd::daemon {
namespace {

// Of what may be any number.
int64_t EndSecond(const Window& window) {
  return window.start_unix_ns / kNsPerSecond + window.duration_ns / kNsPerSecond;
}

}  // namespace

RecentHeat::Heat& RecentHeat::Heat::operator+=(const Heat& other) {
  samples += other.samples;
  cpu_ns += other.cpu_ns;
  wall_ns += other.wall_ns;
  return *this;
}

void RecentHeat::Add(const Window& window) {
  std::vector<Heat> heat(window.locations.size());
  RowTime time(window.setup);
  for (const WindowRow& row : window.rows) {
    const Heat of_row{row.samples, time.TimeOf(row), row.wall_ns};
    if (row.location < heat.size()) heat[row.location] += of_row;
  }
  const std::vector<Heat> own = heat;
  // A few paths are no evidence of one window, and many windows even out.
  for (const CalledPart& part : CalledParts(window.paths.calls, 1)) {
    const Heat& of = own[part.location];
    heat[part.loop] += {part.Of(of.samples), part.Of(of.cpu_ns), part.Of(of.wall_ns)};
  }
  const int64_t second = EndSecond(window);
  ById& slot = slots_[second];
  for (size_t i = 0; i < heat.size(); ++i) {
    const CodeLocation& location = window.locations[i];
    if (heat[i].samples == 0 || location.category != Category::kLoop || !location.loop.has_value())
      continue;
    const std::string id = LocationId(location);
    if (slot.size() < kMostKeys || slot.contains(id))
      slot[id] += heat[i];
    else
      lost_ += heat[i].samples;
  }
  if (slots_.size() <= kMostSlots) return;
  for (const auto& [id, heat_then] : slots_.begin()->second) lost_ += heat_then.samples;
  slots_.erase(slots_.begin());
}

RecentHeat::ById RecentHeat::Recent(int64_t now_unix_ns, int64_t span_ns) {
  const int64_t low = (now_unix_ns - span_ns) / kNsPerSecond;
  const int64_t high = (now_unix_ns + span_ns) / kNsPerSecond;
  std::erase_if(slots_, [&](const auto& slot) { return slot.first <= low || slot.first > high; });
  ById sums;
  for (const auto& [second, slot] : slots_) {
    for (const auto& [id, heat] : slot) sums[id] += heat;
  }
  return sums;
}

}  // namespace perfd::daemon
