#include "daemon/report/hot_loops.h"

#include <algorithm>
#include <map>

#include "core/analysis/hot_set.h"
#include "daemon/report/location_row.h"

namespace perfd::daemon {
namespace {

bool IsLoop(const LocationTotals& location) {
  return IsComputeLoop(location.location) && location.location.loop.has_value();
}

MeasureLoop LoopAt(const CodeLocation& at) {
  return {LocationId(at), LocationKey(at), at.module_id,
          at.module_path, at.function_low, at.loop->header};
}

// Whether every rank that was asked about a loop has nothing more to say.
std::map<std::string, bool> Settled(const MeasuredLoops& measured) {
  std::map<std::string, bool> settled;
  for (const auto& [key, loop] : measured.loops()) {
    const bool open =
        loop.state == MeasureState::kOpen || loop.state == MeasureState::kNeverEntered;
    bool& all = settled.try_emplace(loop.loop_id, true).first->second;
    all = all && !open;
  }
  return settled;
}

}  // namespace

std::vector<MeasureLoop> HotLoops(const ProfileAggregate& aggregate, const HotspotSpec& spec) {
  const PlaceTimes times(aggregate);
  std::vector<const CodeLocation*> locations;
  std::vector<LoopWeight> weights;
  for (size_t i = 0; i < aggregate.locations().size(); ++i) {
    const LocationTotals& location = aggregate.locations()[i];
    if (!IsLoop(location)) continue;
    locations.push_back(&location.location);
    weights.push_back({times.OwnAndCalled(i, BasisOf(aggregate))});
  }
  std::vector<MeasureLoop> loops;
  for (const size_t i : HotSet(weights, spec.coverage_ratio, spec.max_loops))
    loops.push_back(LoopAt(*locations[i]));
  return loops;
}

std::vector<HeatedLoop> HeatOfLoops(const ProfileAggregate& aggregate,
                                    const RecentHeat::ById& recent) {
  const std::map<std::string, bool> settled = Settled(aggregate.measured());
  const ShareBasis basis = BasisOf(aggregate);
  const PlaceTimes times(aggregate);
  std::vector<HeatedLoop> loops;
  for (size_t i = 0; i < aggregate.locations().size(); ++i) {
    const LocationTotals& location = aggregate.locations()[i];
    if (!IsLoop(location)) continue;
    HeatedLoop& out = loops.emplace_back();
    out.loop = LoopAt(location.location);
    out.heat.id = out.loop.loop_id;
    out.heat.whole_ns = times.OwnAndCalled(i, basis);
    if (const auto it = recent.find(out.heat.id); it != recent.end()) {
      out.heat.recent_ns = basis == ShareBasis::kWall ? it->second.wall_ns : it->second.cpu_ns;
      out.heat.recent_samples = it->second.samples;
    }
    if (const auto it = settled.find(out.heat.id); it != settled.end())
      out.heat.settled = it->second;
  }
  std::sort(loops.begin(), loops.end(), [](const HeatedLoop& a, const HeatedLoop& b) {
    return a.loop.location_key < b.loop.location_key;
  });
  return loops;
}

}  // namespace perfd::daemon
