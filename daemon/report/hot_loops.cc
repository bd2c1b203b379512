#include "daemon/report/hot_loops.h"

#include "core/analysis/hot_set.h"
#include "daemon/report/place_row.h"

namespace perfd {

std::vector<MeasureLoop> HotLoops(const ProfileAggregate& aggregate, const HotspotSpec& spec) {
  std::vector<const CodeLocation*> locations;
  std::vector<LoopWeight> weights;
  for (const PlaceTotals& place : aggregate.places()) {
    if (!IsComputeLoop(place.location) || !place.location.loop.has_value()) continue;
    locations.push_back(&place.location);
    weights.push_back({place.counts.samples, place.location.loop->innermost});
  }
  std::vector<MeasureLoop> loops;
  for (const size_t i : HotSet(weights, spec.coverage_ratio, spec.max_loops)) {
    const CodeLocation& at = *locations[i];
    loops.push_back({LocationId(at), LocationKey(at), at.module_id, at.module_path, at.function_low,
                     at.loop->header});
  }
  return loops;
}

}  // namespace perfd
