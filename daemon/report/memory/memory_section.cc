#include "daemon/report/memory/memory_section.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "core/model/code.h"

namespace perfd::daemon {
namespace {

MemoryPlace PlaceOf(const CodeLocation& location, const MemorySums& sums) {
  MemoryPlace place;
  place.id = LocationId(location);
  place.function = location.function;
  place.file = location.source.file;
  place.first_line = location.source.first_line;
  place.last_line = location.source.last_line;
  place.loop = location.loop.has_value();
  place.figures = sums.Figures();
  return place;
}

uint64_t WeightOf(const MemoryFigures& figures) {
  return figures.profile.all.weight;
}

// Heaviest first, at most so many; how many were left out.
template <typename T, typename Less>
uint64_t Cut(std::vector<T>& list, size_t most, Less less) {
  std::sort(list.begin(), list.end(), less);
  const uint64_t left_out = list.size() - std::min(list.size(), most);
  list.resize(list.size() - left_out);
  return left_out;
}

bool HeavierReference(const MemoryReference& a, const MemoryReference& b) {
  return std::tuple(WeightOf(b.figures), a.instruction) <
         std::tuple(WeightOf(a.figures), b.instruction);
}

bool HeavierRank(const RankMemory& a, const RankMemory& b) {
  return std::tie(b.all.weight, a.node, a.rank, a.pid) <
         std::tie(a.all.weight, b.node, b.rank, b.pid);
}

bool HeavierPlace(const MemoryPlace& a, const MemoryPlace& b) {
  return std::tuple(WeightOf(b.figures), a.id) < std::tuple(WeightOf(a.figures), b.id);
}

}  // namespace

MemoryReport MemoryReportOf(const ProfileAggregate& aggregate, const MemoryReportLimits& limits) {
  MemoryReport report;
  const MemoryTable& table = aggregate.findings().memory();
  if (table.empty()) return report;
  std::vector<uint32_t> same(aggregate.locations().size());
  std::iota(same.begin(), same.end(), 0u);
  MemoryState state = table.State(same);
  report.events = std::move(state.events);
  report.job = state.job.Figures();
  report.lost = state.lost;
  std::vector<MemoryPlace> places(aggregate.locations().size());
  for (const PlaceMemory& of : state.places)
    places[of.place] = PlaceOf(aggregate.locations()[of.place].location, of.sums);
  for (const PlaceMemory& of : state.references)
    places[of.place].references.push_back({of.instruction, of.sums.Figures()});
  for (PlaceRankMemory& of : state.ranks)
    places[of.place].ranks.push_back(std::move(of.memory));
  std::erase_if(places, [](const MemoryPlace& place) { return place.id.empty(); });
  report.places_left_out = Cut(places, limits.places, HeavierPlace);
  for (MemoryPlace& place : places) {
    place.references_left_out = Cut(place.references, limits.references, HeavierReference);
    place.ranks_left_out = Cut(place.ranks, limits.ranks, HeavierRank);
  }
  report.places = std::move(places);
  return report;
}

}  // namespace perfd::daemon
