#include "daemon/aggregate/findings/memory_table.h"

#include <algorithm>

#include "core/model/memory/sum.h"

namespace perfd::daemon {
namespace {

constexpr size_t kBytesOfNode = 64;  // what std::map adds to a value
constexpr auto kBeyondL2 = static_cast<size_t>(MemoryBorder::kL2);
constexpr auto kWalk = static_cast<size_t>(TlbResult::kWalk);

// One cluster.
MemorySums SumsOf(const MemoryProfile& profile, const LoadTimes& times) {
  MemorySums sums{profile, times, {}};
  for (size_t i = 0; i < kMemoryBorders; ++i) sums.squares[i].Add(times.borders[i]);
  return sums;
}

// What rows of one window tell of the same.
struct Cluster {
  MemoryProfile profile;
  LoadTimes times;

  void Add(const MemoryRow& row) {
    profile.Merge(row.profile);
    times.Merge(row.times);
  }
};

RankMemory RankOf(const Window& window, const MemoryRow& row, const Cluster& cluster) {
  const BorderTime& beyond = cluster.times.borders[kBeyondL2];
  return {.node = window.node,
          .rank = row.rank,
          .pid = row.pid,
          .all = cluster.profile.all,
          .walks = cluster.profile.tlb[kWalk],
          .told = beyond.told,
          .untold = beyond.untold,
          .without_latency = cluster.times.without_latency,
          .told_cycles = beyond.told_cycles,
          .beyond_cycles = beyond.beyond_cycles,
          .untold_cycles = beyond.untold_cycles};
}

void MergeRank(const RankMemory& from, RankMemory& to) {
  to.all.Merge(from.all);
  to.walks.Merge(from.walks);
  to.told = Sum(to.told, from.told);
  to.untold = Sum(to.untold, from.untold);
  to.without_latency = Sum(to.without_latency, from.without_latency);
  to.told_cycles = Sum(to.told_cycles, from.told_cycles);
  to.beyond_cycles = Sum(to.beyond_cycles, from.beyond_cycles);
  to.untold_cycles = Sum(to.untold_cycles, from.untold_cycles);
}

}  // namespace

void MemorySums::Merge(const MemorySums& other) {
  profile.Merge(other.profile);
  times.Merge(other.times);
  for (size_t i = 0; i < kMemoryBorders; ++i) squares[i].Merge(other.squares[i]);
}

MemoryFigures MemorySums::Figures() const {
  MemoryFigures out{profile, {}};
  for (size_t i = 0; i < kMemoryBorders; ++i)
    out.beyond[i] = ShareBeyond(times.borders[i], squares[i], times.without_latency);
  return out;
}

void MemoryTable::AddEvents(const std::vector<MemoryEvent>& events) {
  for (const MemoryEvent& event : events) {
    if (events_.size() < limits_.events || events_.contains(event)) events_.insert(event);
  }
}

void MemoryTable::AddPlace(uint32_t place, const MemorySums& sums) {
  const auto it = places_.find(place);
  if (it != places_.end())
    it->second.Merge(sums);
  else if (places_.size() < limits_.places)
    places_.emplace(place, sums);
  else
    lost_.without_place = Sum(lost_.without_place, sums.profile.all.samples);
}

void MemoryTable::AddReference(const Reference& reference, const MemorySums& sums) {
  const auto it = references_.find(reference);
  if (it != references_.end())
    it->second.Merge(sums);
  else if (references_.size() < limits_.references)
    references_.emplace(reference, sums);
  else
    lost_.without_instruction = Sum(lost_.without_instruction, sums.profile.all.samples);
}

void MemoryTable::AddRank(uint32_t place, const RankMemory& memory) {
  const Rank key{place, memory.node, memory.rank, memory.pid};
  const auto it = ranks_.find(key);
  if (it != ranks_.end())
    MergeRank(memory, it->second);
  else if (ranks_.size() < limits_.ranks)
    ranks_.emplace(key, memory);
  else
    lost_.without_rank = Sum(lost_.without_rank, memory.all.samples);
}

void MemoryTable::Add(const Window& window, const std::vector<uint32_t>& place) {
  const WindowMemory& memory = window.findings.memory;
  AddEvents(memory.events);
  lost_.accesses = Sum(lost_.accesses, memory.lost);
  using Process = std::pair<int32_t, int32_t>;  // rank, pid
  std::map<Process, Cluster> of_process;
  std::map<std::pair<uint32_t, Process>, std::pair<Cluster, const MemoryRow*>> of_place;
  std::map<std::pair<Reference, Process>, Cluster> of_reference;
  for (const MemoryRow& row : memory.rows) {
    const Process process{row.rank, row.pid};
    const uint32_t at = place[row.location];
    of_process[process].Add(row);
    auto& [cluster, first] = of_place[{at, process}];
    cluster.Add(row);
    first = &row;
    if (row.instruction != ElfAddress(0))
      of_reference[{{at, row.instruction.value()}, process}].Add(row);
  }
  for (const auto& [process, cluster] : of_process)
    job_.Merge(SumsOf(cluster.profile, cluster.times));
  for (const auto& [key, of] : of_place) {
    const auto& [cluster, row] = of;
    AddPlace(key.first, SumsOf(cluster.profile, cluster.times));
    AddRank(key.first, RankOf(window, *row, cluster));
  }
  for (const auto& [key, cluster] : of_reference)
    AddReference(key.first, SumsOf(cluster.profile, cluster.times));
}

void MemoryTable::Absorb(const MemoryState& state, const std::vector<uint32_t>& place) {
  AddEvents(state.events);
  job_.Merge(state.job);
  lost_.Merge(state.lost);
  for (const PlaceMemory& from : state.places) AddPlace(place[from.place], from.sums);
  for (const PlaceMemory& from : state.references)
    AddReference({place[from.place], from.instruction.value()}, from.sums);
  for (const PlaceRankMemory& from : state.ranks) AddRank(place[from.place], from.memory);
}

MemoryState MemoryTable::State(const std::vector<uint32_t>& place) const {
  MemoryState state;
  state.events.assign(events_.begin(), events_.end());
  state.job = job_;
  state.lost = lost_;
  for (const auto& [at, sums] : places_) state.places.push_back({place[at], 0, sums});
  for (const auto& [key, sums] : references_)
    state.references.push_back({place[key.first], ElfAddress(key.second), sums});
  for (const auto& [key, memory] : ranks_)
    state.ranks.push_back({place[std::get<0>(key)], memory});
  const auto by_place = [](const PlaceMemory& a, const PlaceMemory& b) {
    return std::pair(a.place, a.instruction) < std::pair(b.place, b.instruction);
  };
  std::sort(state.places.begin(), state.places.end(), by_place);
  std::sort(state.references.begin(), state.references.end(), by_place);
  std::sort(state.ranks.begin(), state.ranks.end(),
            [](const PlaceRankMemory& a, const PlaceRankMemory& b) {
              return std::tie(a.place, a.memory.node, a.memory.rank, a.memory.pid) <
                     std::tie(b.place, b.memory.node, b.memory.rank, b.memory.pid);
            });
  return state;
}

size_t MemoryTable::Bytes() const {
  const size_t sums = places_.size() + references_.size();
  size_t bytes = sums * (sizeof(MemorySums) + kBytesOfNode) +
                 ranks_.size() * (sizeof(RankMemory) + sizeof(Rank) + kBytesOfNode);
  for (const auto& [key, memory] : ranks_) bytes += 2 * memory.node.size();
  for (const MemoryEvent& event : events_) bytes += sizeof(event) + event.name.size();
  return bytes;
}

void MemoryTable::Freeze() {
  limits_ = {events_.size(), places_.size(), references_.size(), ranks_.size()};
}

}  // namespace perfd::daemon
