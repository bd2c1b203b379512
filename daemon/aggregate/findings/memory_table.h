// daemon/aggregate/findings/memory_table.h - sampled accesses to memory of a profile: of the job, by place, by instruction, by rank.
//
// Shape    sums: any order and grouping gives an equal State(). Places are indices of the owner.
// Units    see core/model/memory. A cluster is one process in one window.
// Limits   see MemoryLimits. Beyond them a new place, instruction or rank has no sums of its own: counted in MemoryLost; the job holds all.
// Threads  thread-compatible.
#ifndef DAEMON_AGGREGATE_FINDINGS_MEMORY_TABLE_H_
#define DAEMON_AGGREGATE_FINDINGS_MEMORY_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/analysis/memory/beyond_share.h"
#include "core/model/memory/memory_report.h"
#include "core/model/window.h"

namespace perfd::daemon {

struct MemorySums {
  MemoryProfile profile{};
  LoadTimes times{};
  std::array<BorderSquares, kMemoryBorders> squares{};

  void Merge(const MemorySums& other);
  MemoryFigures Figures() const;
  bool operator==(const MemorySums&) const = default;
};

struct PlaceMemory {
  uint32_t place = 0;
  ElfAddress instruction = 0;  // 0: of the whole place
  MemorySums sums{};

  bool operator==(const PlaceMemory&) const = default;
};

struct PlaceRankMemory {
  uint32_t place = 0;
  RankMemory memory{};

  bool operator==(const PlaceRankMemory&) const = default;
};

// Canonical: sorted, without duplicates.
struct MemoryState {
  std::vector<MemoryEvent> events;
  MemorySums job{};
  std::vector<PlaceMemory> places;       // by place
  std::vector<PlaceMemory> references;   // by place, instruction
  std::vector<PlaceRankMemory> ranks;    // by place, node, rank, pid
  MemoryLost lost{};

  bool operator==(const MemoryState&) const = default;
};

struct MemoryLimits {
  size_t events = 64;
  size_t places = 20'000;
  size_t references = 20'000;
  size_t ranks = 1'000'000;
};

class MemoryTable {
 public:
  explicit MemoryTable(const MemoryLimits& limits = {}) : limits_(limits) {}

  // `place`: the owner's index of each location of the window that a row refers to.
  void Add(const Window& window, const std::vector<uint32_t>& place);
  // `place`: the owner's index of each place of the state.
  void Absorb(const MemoryState& state, const std::vector<uint32_t>& place);
  // `place`: the new index of each place of the owner.
  MemoryState State(const std::vector<uint32_t>& place) const;
  // Of memory, about.
  size_t Bytes() const;
  // As if each limit was reached now.
  void Freeze();
  bool empty() const {
    return events_.empty() && job_.profile.all.samples == 0 && lost_ == MemoryLost{};
  }

 private:
  using Reference = std::pair<uint32_t, uint64_t>;                     // place, instruction
  using Rank = std::tuple<uint32_t, std::string, int32_t, int32_t>;  // place, node, rank, pid

  void AddEvents(const std::vector<MemoryEvent>& events);
  void AddPlace(uint32_t place, const MemorySums& sums);
  void AddReference(const Reference& reference, const MemorySums& sums);
  void AddRank(uint32_t place, const RankMemory& memory);

  MemoryLimits limits_;
  std::set<MemoryEvent> events_;
  MemorySums job_;
  std::map<uint32_t, MemorySums> places_;
  std::map<Reference, MemorySums> references_;
  std::map<Rank, RankMemory> ranks_;
  MemoryLost lost_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_AGGREGATE_FINDINGS_MEMORY_TABLE_H_
