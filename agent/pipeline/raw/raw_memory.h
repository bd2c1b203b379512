// agent/pipeline/raw/raw_memory.h - sampled accesses to memory of one window, by process and address of the instruction.
//
// Shape    MemoryCounter: Count each access; Drain() hands over what was counted and starts anew, but for the events.
// Loss     kMaxRawMemoryRows instructions; accesses of later new ones are of no place, one row for each process. Loads that together take
//          longer than kMostWindowCycles lose their latency.
// Threads  thread-compatible.
#ifndef AGENT_PIPELINE_RAW_RAW_MEMORY_H_
#define AGENT_PIPELINE_RAW_RAW_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "agent/pipeline/raw/raw_location.h"
#include "core/model/memory/window_memory.h"

namespace perfd::agent {

// 30 MB; the daemon takes more (core/wire/check/limits.h).
inline constexpr size_t kMaxRawMemoryRows = 16'384;
inline constexpr size_t kMaxMemoryEvents = 64;

struct RawMemoryRow {
  int32_t rank = 0;
  int32_t pid = 0;
  RawLocation at{};
  MemoryProfile profile{};
  LoadTimes times{};
};

struct RawMemory {
  std::vector<MemoryEvent> events;
  std::vector<RawMemoryRow> rows;
  uint64_t lost = 0;
};

class MemoryCounter {
 public:
  // What all that follows is sampled with.
  void SetEvents(std::vector<MemoryEvent> events);
  void Count(int32_t rank, int32_t pid, const RawLocation& at, const SampledAccess& access);
  // Accesses that are in no row.
  void Lose(uint64_t accesses) { memory_.lost += accesses; }
  RawMemory Drain();

 private:
  struct Key {
    int32_t rank;
    int32_t pid;
    RawLocation at;
    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.rank, k.pid, k.at);
    }
  };

  RawMemoryRow* RowOf(const Key& key, size_t most_rows);

  std::vector<MemoryEvent> events_;
  absl::flat_hash_map<Key, size_t> index_;
  RawMemory memory_;
  uint64_t cycles_ = 0;  // of its loads
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_RAW_RAW_MEMORY_H_
