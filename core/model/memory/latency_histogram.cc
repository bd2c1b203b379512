#include "core/model/memory/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace perfd {
namespace {

constexpr size_t kPerPower = 4;
constexpr int kSubBits = 2;

}  // namespace

size_t LatencyHistogram::BucketOf(uint64_t cycles) {
  if (cycles < kPerPower) return static_cast<size_t>(cycles);
  const int power = static_cast<int>(std::bit_width(cycles)) - 1;
  const size_t sub = cycles >> (power - kSubBits) & (kPerPower - 1);
  return std::min(kPerPower * static_cast<size_t>(power - 1) + sub, kBuckets - 1);
}

LatencyRange LatencyHistogram::RangeOf(size_t bucket) {
  const auto low = [](size_t i) -> uint64_t {
    if (i < kPerPower) return i;
    return (kPerPower + i % kPerPower) << (i / kPerPower - 1);
  };
  return {low(bucket), bucket + 1 < kBuckets ? low(bucket + 1) : UINT64_MAX};
}

void LatencyHistogram::Add(uint64_t cycles, uint64_t samples) {
  counts_[BucketOf(cycles)] += samples;
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
}

uint64_t LatencyHistogram::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), uint64_t{0});
}

LatencyRange LatencyHistogram::Quantile(double part) const {
  const uint64_t all = total();
  if (all == 0) return {};
  const double wanted = std::clamp(part, 0.0, 1.0) * static_cast<double>(all);
  uint64_t below = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    below += counts_[i];
    if (below > 0 && static_cast<double>(below) >= wanted) return RangeOf(i);
  }
  return RangeOf(kBuckets - 1);
}

}  // namespace perfd
