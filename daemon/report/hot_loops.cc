#include "daemon/report/hot_loops.h"

#include <algorithm>
#include <map>

#include "core/analysis/hot/hot_set.h"
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

// Of the variants of an open loop, those that it still lacks.
double OpenRatio(const LoopMeasurement& loop) {
  const auto measured = static_cast<double>(
      std::count_if(loop.figures.begin(), loop.figures.end(), [](const VariantFigures& figures) {
        return figures.thread == kTeam && figures.valid_runs > 0;
      }));
  const auto open = static_cast<double>(loop.open.size());
  return measured + open == 0 ? 1 : open / (measured + open);
}

uint64_t LearntOf(const LoopMeasurement& loop) {
  uint64_t learnt = loop.cost.shadows + loop.refusals.size() + loop.fidelity.live_instances;
  for (const VariantFigures& figures : loop.figures) learnt += figures.valid_runs;
  return learnt;
}

// By loop, of every rank that was asked about it.
std::map<std::string, LoopLearning> KnowledgeOf(const MeasuredLoops& measured) {
  std::map<std::string, LoopLearning> known;
  for (const auto& [key, loop] : measured.loops()) {
    const LoopLearning none = {.settled = true, .open_ratio = 0};
    LoopLearning& all = known.try_emplace(loop.loop_id, none).first->second;
    const bool open =
        loop.state == MeasureState::kOpen || loop.state == MeasureState::kNeverEntered;
    all.settled = all.settled && !open;
    if (open) all.open_ratio = std::max(all.open_ratio, OpenRatio(loop));
    all.learnt += LearntOf(loop);
  }
  return known;
}

// Places of the compute loops that are hot, heaviest first.
std::vector<size_t> HotPlaces(const ProfileAggregate& aggregate, const PlaceTimes& times,
                              const HotspotSpec& spec) {
  std::vector<size_t> places;
  std::vector<LoopWeight> weights;
  for (size_t i = 0; i < aggregate.locations().size(); ++i) {
    if (!IsLoop(aggregate.locations()[i])) continue;
    places.push_back(i);
    weights.push_back({times.OwnAndCalled(i, BasisOf(aggregate))});
  }
  std::vector<size_t> hot;
  for (const size_t i : HotSet(weights, spec.coverage_ratio, spec.max_loops))
    hot.push_back(places[i]);
  return hot;
}

}  // namespace

std::vector<MeasureLoop> HotLoops(const ProfileAggregate& aggregate, const HotspotSpec& spec) {
  std::vector<MeasureLoop> loops;
  for (const size_t i : HotPlaces(aggregate, PlaceTimes(aggregate), spec))
    loops.push_back(LoopAt(aggregate.locations()[i].location));
  return loops;
}

ShareKnowledge SharesOfHot(const ProfileAggregate& aggregate, const HotspotSpec& spec) {
  const PlaceTimes times(aggregate);
  ShareKnowledge out = {.samples = aggregate.totals().accounting.kept};
  for (const size_t i : HotPlaces(aggregate, times, spec)) {
    const ReportRow row = times.Row(i);
    const Interval& interval = row.wall.has_value() ? row.wall->interval : row.share_interval;
    const double reach = interval.high > 0 ? (interval.high - interval.low) / 2 : -1;
    ++out.hot;
    out.widest = out.widest < 0 || reach < 0 ? -1 : std::max(out.widest, reach);
  }
  return out;
}

std::vector<HeatedLoop> HeatOfLoops(const ProfileAggregate& aggregate,
                                    const RecentHeat::ById& recent) {
  const std::map<std::string, LoopLearning> known = KnowledgeOf(aggregate.findings().measured());
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
    if (const auto it = known.find(out.heat.id); it != known.end()) out.knowledge = it->second;
    out.heat.settled = out.knowledge.settled;
  }
  std::sort(loops.begin(), loops.end(), [](const HeatedLoop& a, const HeatedLoop& b) {
    return a.loop.location_key < b.loop.location_key;
  });
  return loops;
}

}  // namespace perfd::daemon
