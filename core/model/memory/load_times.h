// core/model/memory/load_times.h - the time that loads took, and how much of it was spent beyond each level of the memory.
//
// Shape    Add samples, Merge in any order and grouping: the same sums, bit by bit.
// Rules    the time of loads is their latency times what their sample stands for. A load counts for a border only where its source
//          tells on which side it was found: one from a fill buffer was beyond L1, and how far is not told.
// Units    cycles.
// Bounds   a sum has kMostLoadCycles at most; what is above counts as not told.
// Threads  thread-compatible.
// Source   include/uapi/linux/perf_event.h, PERF_MEM_LVL_*: "LFB" is a line that is on its way already.
#ifndef CORE_MODEL_MEMORY_LOAD_TIMES_H_
#define CORE_MODEL_MEMORY_LOAD_TIMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/numeric/int128.h"
#include "core/model/memory/memory_access.h"
#include "core/model/memory/memory_profile.h"
#include "core/model/memory/sum.h"

namespace perfd {

enum class MemoryBorder : uint8_t { kL1, kL2, kL3, kNode };
inline constexpr size_t kMemoryBorders = 4;

// Nothing: the source does not tell.
std::optional<bool> IsBeyond(const MemorySource& source, MemoryBorder border);

// Of one sample, and of one sum: their squares fit 128 bits. Nothing that is true comes near them.
inline constexpr uint64_t kMostSampleCycles = uint64_t{1} << 56;
inline constexpr uint64_t kMostLoadCycles = uint64_t{1} << 62;
// Of all loads of one window, so that sums over many windows do not overflow: what 1024 CPUs, each with 60 loads under way, come to in an
// hour.
inline constexpr uint64_t kMostWindowCycles = uint64_t{1} << 50;

// Latency times what the sample stands for; of a store or without a latency 0; at most one more than kMostSampleCycles.
uint64_t LoadCycles(const SampledAccess& sample);

struct BorderTime {
  uint64_t told = 0;    // samples of loads that tell on which side they were found
  uint64_t untold = 0;  // and that do not
  uint64_t told_cycles = 0;
  uint64_t beyond_cycles = 0;
  uint64_t untold_cycles = 0;
  absl::uint128 told_squares = 0;  // over samples
  absl::uint128 beyond_squares = 0;

  void Add(uint64_t cycles, std::optional<bool> beyond);
  void Merge(const BorderTime& other);
  bool operator==(const BorderTime&) const = default;
};

struct LoadTimes {
  std::array<BorderTime, kMemoryBorders> borders{};
  uint64_t without_latency = 0;  // samples of loads that say where they were found, but not how long they took

  void Add(const SampledAccess& sample);
  void Merge(const LoadTimes& other);
  bool operator==(const LoadTimes&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_MEMORY_LOAD_TIMES_H_
