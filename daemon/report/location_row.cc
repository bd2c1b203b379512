#include "daemon/report/location_row.h"

#include <algorithm>

namespace perfd::daemon {

bool IsWaitingLoop(const CodeLocation& location) {
  return location.loop.has_value() && location.loop_kind == LoopKind::kWaiting;
}

bool IsComputeLoop(const CodeLocation& location) {
  return location.category == Category::kLoop && !IsWaitingLoop(location);
}

double RatioOf(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

double ShareOf(uint64_t part, uint64_t whole) {
  return std::min(1.0, RatioOf(part, whole));
}

ReportRow LocationRow(const ProfileAggregate& aggregate, const LocationTotals& location,
                      uint64_t inclusive) {
  const uint64_t total = aggregate.totals().cpu_ns;
  ReportRow row;
  row.id = LocationId(location.location);
  row.location = location.location;
  row.samples = location.counts.samples;
  row.share = ShareOf(location.counts.cpu_ns, total);
  row.share_interval = ShareInterval(aggregate.SumsOf(location));
  row.inclusive_share = ShareOf(inclusive, total);
  return row;
}

std::vector<uint32_t> HeaviestFirst(const std::vector<LocationTotals>& locations) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < locations.size(); ++i) {
    if (locations[i].counts.samples > 0) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (locations[a].counts.cpu_ns != locations[b].counts.cpu_ns)
      return locations[a].counts.cpu_ns > locations[b].counts.cpu_ns;
    return LocationKey(locations[a].location) < LocationKey(locations[b].location);
  });
  return order;
}

}  // namespace perfd::daemon
