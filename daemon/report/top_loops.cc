#include "daemon/report/top_loops.h"

#include "daemon/report/inclusive.h"
#include "daemon/report/location_row.h"

namespace perfd::daemon {

std::vector<ReportRow> TopLoops(const ProfileAggregate& aggregate, size_t count) {
  std::vector<ReportRow> rows;
  if (count == 0) return rows;
  const std::vector<LocationTotals>& locations = aggregate.locations();
  const std::vector<InclusiveTime> inclusive = InclusiveTimes(locations);
  for (uint32_t i : HeaviestFirst(aggregate)) {
    if (!IsComputeLoop(locations[i].location)) continue;
    rows.push_back(LocationRow(aggregate, locations[i], inclusive[i]));
    if (rows.size() == count) break;
  }
  return rows;
}

}  // namespace perfd::daemon
