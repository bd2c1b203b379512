#include "daemon/aggregate/recent_heat.h"

#include <vector>

#include "core/base/clock.h"

namespace perfd {
namespace {

// Of what may be any number.
int64_t EndSecond(const Window& window) {
  return window.start_unix_ns / kNsPerSecond + window.duration_ns / kNsPerSecond;
}

}  // namespace

void RecentHeat::Add(const Window& window) {
  std::vector<uint64_t> samples(window.locations.size(), 0);
  for (const WindowRow& row : window.rows) {
    if (row.location < samples.size()) samples[row.location] += row.samples;
  }
  const int64_t second = EndSecond(window);
  ById& slot = slots_[second];
  for (size_t i = 0; i < samples.size(); ++i) {
    const CodeLocation& location = window.locations[i];
    if (samples[i] == 0 || location.category != Category::kLoop || !location.loop.has_value())
      continue;
    const std::string id = LocationId(location);
    if (slot.size() < kMostKeys || slot.contains(id))
      slot[id] += samples[i];
    else
      lost_ += samples[i];
  }
  if (slots_.size() <= kMostSlots) return;
  for (const auto& [id, count] : slots_.begin()->second) lost_ += count;
  slots_.erase(slots_.begin());
}

RecentHeat::ById RecentHeat::Samples(int64_t now_unix_ns, int64_t span_ns) {
  const int64_t low = (now_unix_ns - span_ns) / kNsPerSecond;
  const int64_t high = (now_unix_ns + span_ns) / kNsPerSecond;
  std::erase_if(slots_, [&](const auto& slot) { return slot.first <= low || slot.first > high; });
  ById sums;
  for (const auto& [second, slot] : slots_) {
    for (const auto& [id, count] : slot) sums[id] += count;
  }
  return sums;
}

}  // namespace perfd
