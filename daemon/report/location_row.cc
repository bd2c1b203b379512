#include "daemon/report/place_row.h"

#include <algorithm>

namespace perfd {

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

ReportRow PlaceRow(const ProfileAggregate& aggregate, const PlaceTotals& place,
                   uint64_t inclusive) {
  const uint64_t total = aggregate.totals().cpu_ns;
  ReportRow row;
  row.id = LocationId(place.location);
  row.location = place.location;
  row.samples = place.counts.samples;
  row.share = ShareOf(place.counts.cpu_ns, total);
  row.share_interval = ShareInterval(aggregate.SumsOf(place));
  row.inclusive_share = ShareOf(inclusive, total);
  return row;
}

std::vector<uint32_t> HeaviestFirst(const std::vector<PlaceTotals>& places) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < places.size(); ++i) {
    if (places[i].counts.samples > 0) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (places[a].counts.cpu_ns != places[b].counts.cpu_ns)
      return places[a].counts.cpu_ns > places[b].counts.cpu_ns;
    return LocationKey(places[a].location) < LocationKey(places[b].location);
  });
  return order;
}

}  // namespace perfd
