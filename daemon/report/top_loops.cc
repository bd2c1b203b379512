#include "daemon/report/top_loops.h"

#include "daemon/report/inclusive.h"
#include "daemon/report/place_row.h"

namespace perfd {

std::vector<ReportRow> TopLoops(const ProfileAggregate& aggregate, size_t count) {
  std::vector<ReportRow> rows;
  if (count == 0) return rows;
  const std::vector<PlaceTotals>& places = aggregate.places();
  const std::vector<uint64_t> inclusive = InclusiveNs(places);
  for (uint32_t i : HeaviestFirst(places)) {
    if (!IsComputeLoop(places[i].location)) continue;
    rows.push_back(PlaceRow(aggregate, places[i], inclusive[i]));
    if (rows.size() == count) break;
  }
  return rows;
}

}  // namespace perfd
