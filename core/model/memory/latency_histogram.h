// core/model/memory/latency_histogram.h - latencies in buckets that grow with them: four to each power of two.
//
// Shape    Add, Merge in any order and grouping, then ask. Counts are exact, a latency is known to its bucket: 25 % at most.
// Units    cycles.
// Threads  thread-compatible.
#ifndef CORE_MODEL_MEMORY_LATENCY_HISTOGRAM_H_
#define CORE_MODEL_MEMORY_LATENCY_HISTOGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace perfd {

// From `low` on, below `high`.
struct LatencyRange {
  uint64_t low = 0;
  uint64_t high = 0;

  bool operator==(const LatencyRange&) const = default;
};

class LatencyHistogram {
 public:
  static constexpr size_t kBuckets = 96;  // the last one has no end: from 29,360,128 cycles on

  void Add(uint64_t cycles, uint64_t samples = 1);
  void Merge(const LatencyHistogram& other);
  uint64_t total() const;
  uint64_t at(size_t bucket) const { return counts_[bucket]; }
  // The bucket in which this part (0..1) of the samples is reached; {0, 0} without samples.
  LatencyRange Quantile(double part) const;

  static size_t BucketOf(uint64_t cycles);
  static LatencyRange RangeOf(size_t bucket);

  bool operator==(const LatencyHistogram&) const = default;

 private:
  std::array<uint64_t, kBuckets> counts_{};
};

}  // namespace perfd

#endif  // CORE_MODEL_MEMORY_LATENCY_HISTOGRAM_H_
