#include "core/analysis/memory/memory_figures.h"

#include "absl/numeric/int128.h"
#include "core/analysis/memory/beyond_share.h"

namespace perfd {
namespace {

constexpr uint64_t kNsPerS = 1'000'000'000;
// What ClusterSums can hold of all clusters (share_interval.h).
constexpr absl::uint128 kMostSum = kMostWindowCycles;

uint16_t ClusterOf(const SampledAccess& sample) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 by the golden ratio
  const uint64_t second = sample.time_ns / kNsPerS;
  const uint64_t key = (static_cast<uint64_t>(sample.tid) << 32) ^ second;
  return static_cast<uint16_t>(key * kGolden >> 48);
}

// In units of 2^shift cycles.
BorderTime Shifted(BorderTime time, int shift) {
  time.told_cycles >>= shift;
  time.beyond_cycles >>= shift;
  time.untold_cycles >>= shift;
  time.told_squares >>= 2 * shift;
  time.beyond_squares >>= 2 * shift;
  return time;
}

}  // namespace

void MemoryTally::Add(const SampledAccess& sample) {
  profile_.Add(sample);
  clusters_[ClusterOf(sample)].Add(sample);
}

BeyondShare MemoryTally::Share(size_t border) const {
  absl::uint128 cycles = 0;
  for (const auto& [key, cluster] : clusters_) cycles += cluster.borders[border].told_cycles;
  int shift = 0;  // of all times alike, until their sum fits
  while ((cycles >> shift) > kMostSum) ++shift;
  BorderTime sums;
  BorderSquares squares;
  uint64_t without_latency = 0;
  for (const auto& [key, cluster] : clusters_) {
    const BorderTime time = Shifted(cluster.borders[border], shift);
    sums.Merge(time);
    squares.Add(time);
    without_latency += cluster.without_latency;
  }
  return ShareBeyond(sums, squares, without_latency);
}

MemoryFigures MemoryTally::Figures() const {
  MemoryFigures out{profile_, {}};
  for (size_t i = 0; i < kMemoryBorders; ++i) out.beyond[i] = Share(i);
  return out;
}

}  // namespace perfd
