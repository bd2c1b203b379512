#include "daemon/report/top_loops.h"

#include "daemon/report/location_row.h"

namespace perfd::daemon {

std::vector<ReportRow> TopLoops(const ProfileAggregate& aggregate, size_t count) {
  std::vector<ReportRow> rows;
  if (count == 0) return rows;
  const std::vector<LocationTotals>& locations = aggregate.locations();
  const PlaceTimes times(aggregate);
  for (uint32_t i : HeaviestFirst(aggregate, times)) {
    if (!IsComputeLoop(locations[i].location)) continue;
    rows.push_back(times.Row(i));
    if (rows.size() == count) break;
  }
  return rows;
}

}  // namespace perfd::daemon
