#include "daemon/report/location_row.h"

#include <algorithm>
#include <utility>

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

ShareBasis BasisOf(const ProfileAggregate& aggregate) {
  return aggregate.totals().wall.Known() ? ShareBasis::kWall : ShareBasis::kCpu;
}

uint64_t TimeOf(const Counts& counts, ShareBasis basis) {
  return basis == ShareBasis::kWall ? counts.wall_ns : counts.cpu_ns;
}

ReportRow LocationRow(const ProfileAggregate& aggregate, const LocationTotals& location,
                      const InclusiveTime& inclusive) {
  const JobTotals& totals = aggregate.totals();
  ReportRow row;
  row.id = LocationId(location.location);
  row.location = location.location;
  row.samples = location.counts.samples;
  row.share = ShareOf(location.counts.cpu_ns, totals.cpu_ns);
  row.share_interval = ShareInterval(aggregate.SumsOf(location));
  row.inclusive_share = ShareOf(inclusive.cpu_ns, totals.cpu_ns);
  if (BasisOf(aggregate) == ShareBasis::kWall) {
    row.wall = {ShareOf(location.counts.wall_ns, totals.wall.elapsed_ns),
                ShareInterval(aggregate.SumsOf(location, ShareBasis::kWall)),
                ShareOf(inclusive.wall_ns, totals.wall.elapsed_ns)};
  }
  return row;
}

std::vector<uint32_t> HeaviestFirst(const ProfileAggregate& aggregate) {
  const std::vector<LocationTotals>& locations = aggregate.locations();
  const ShareBasis basis = BasisOf(aggregate);
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < locations.size(); ++i) {
    if (locations[i].counts.samples > 0) order.push_back(i);
  }
  const auto times = [&](uint32_t i) {
    return std::pair(TimeOf(locations[i].counts, basis), locations[i].counts.cpu_ns);
  };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (times(a) != times(b)) return times(a) > times(b);
    return LocationKey(locations[a].location) < LocationKey(locations[b].location);
  });
  return order;
}

}  // namespace perfd::daemon
