// core/model/memory/memory_profile.h - many sampled accesses to memory, counted: by level, by DTLB, by latency.
//
// Shape    Add samples, Merge profiles in any order and grouping: the same sums, bit by bit.
// Units    `weight` is what samples stand for, in the event's own unit (its period); latencies in cycles.
// Threads  thread-compatible.
#ifndef CORE_MODEL_MEMORY_MEMORY_PROFILE_H_
#define CORE_MODEL_MEMORY_MEMORY_PROFILE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/model/memory/latency_histogram.h"
#include "core/model/memory/memory_access.h"

namespace perfd {

// What is known of one sample for this.
struct SampledAccess {
  int32_t tid = 0;
  uint64_t time_ns = 0;
  uint64_t period = 0;
  bool kernel = false;
  MemoryAccess access{};
};

struct AccessCount {
  uint64_t samples = 0;
  uint64_t weight = 0;

  void Add(uint64_t period);
  void Merge(const AccessCount& other);
  bool operator==(const AccessCount&) const = default;
};

inline constexpr size_t kTlbResults = 6;

struct MemoryProfile {
  AccessCount all;
  AccessCount kernel;  // of all: the kernel's own
  uint64_t without_address = 0;
  uint64_t without_latency = 0;
  uint64_t without_source = 0;                      // neither level nor DTLB are known
  std::array<AccessCount, kMemoryLevels> loads{};   // found there; kUnknown: not told
  std::array<AccessCount, kMemoryLevels> missed{};  // not found there, and more is not told
  std::array<AccessCount, kTlbResults> tlb{};       // of all, by TlbResult
  AccessCount stores;
  AccessCount hit_modified;  // of all: the line was changed in another cache
  AccessCount locked;        // of all
  LatencyHistogram latency;  // of those with one

  void Add(const SampledAccess& sample);
  void Merge(const MemoryProfile& other);
  bool operator==(const MemoryProfile&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_MEMORY_MEMORY_PROFILE_H_
