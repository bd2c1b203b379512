#include "core/analysis/memory/memory_figures.h"

#include <algorithm>

namespace perfd {
namespace {

constexpr uint64_t kNsPerS = 1'000'000'000;
// Of one sample: the squares of as many as there can be fit 128 bits. Nothing that is true comes near it; what is beyond does not tell.
constexpr absl::uint128 kMostTime = absl::uint128(1) << 52;
// What ClusterSums can hold of all clusters (share_interval.h).
constexpr absl::uint128 kMostSum = absl::uint128(1) << 50;
// Of the loads that say where they were found: so many may lack a latency.
constexpr uint64_t kFewWithout = 100;

// How far away a level is: 1 is L1. 0: not told.
int DistanceOf(MemoryLevel level) {
  switch (level) {
    case MemoryLevel::kUnknown:
    case MemoryLevel::kFillBuffer:
      return 0;
    case MemoryLevel::kL1:
      return 1;
    case MemoryLevel::kL2:
      return 2;
    case MemoryLevel::kL3:
    case MemoryLevel::kOtherCache:
      return 3;
    case MemoryLevel::kL4:
    case MemoryLevel::kRemoteCache:
    case MemoryLevel::kLocalDram:
    case MemoryLevel::kRemoteDram:
    case MemoryLevel::kDram:
    case MemoryLevel::kPersistent:
    case MemoryLevel::kCxl:
    case MemoryLevel::kIo:
    case MemoryLevel::kUncached:
      return 4;
  }
  return 0;
}

std::optional<bool> IsBeyondNode(MemoryLevel level) {
  switch (level) {
    case MemoryLevel::kRemoteCache:
    case MemoryLevel::kRemoteDram:
      return true;
    case MemoryLevel::kL1:
    case MemoryLevel::kL2:
    case MemoryLevel::kL3:
    case MemoryLevel::kL4:
    case MemoryLevel::kOtherCache:
    case MemoryLevel::kLocalDram:
      return false;
    default:
      return std::nullopt;
  }
}

int DistanceOf(MemoryBorder border) {
  return static_cast<int>(border) + 1;
}

uint16_t ClusterOf(const SampledAccess& sample) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 by the golden ratio
  const uint64_t second = sample.time_ns / kNsPerS;
  const uint64_t key = (static_cast<uint64_t>(sample.tid) << 32) ^ second;
  return static_cast<uint16_t>(key * kGolden >> 48);
}

absl::uint128 TimeOf(const SampledAccess& sample) {
  return absl::uint128(sample.access.latency_cycles) * std::max<uint64_t>(sample.period, 1);
}

}  // namespace

std::optional<bool> IsBeyond(const MemorySource& source, MemoryBorder border) {
  if (border == MemoryBorder::kNode)
    return source.missed ? std::nullopt : IsBeyondNode(source.level);
  const int wanted = DistanceOf(border);
  if (source.level == MemoryLevel::kFillBuffer)
    return border == MemoryBorder::kL1 ? std::optional(true) : std::nullopt;
  // Not in the core's own L2; whether it asked its L3 first depends on which cores share one.
  if (source.level == MemoryLevel::kOtherCache)
    return border == MemoryBorder::kL3 ? std::nullopt : std::optional(true);
  const int distance = DistanceOf(source.level);
  if (distance == 0) return std::nullopt;
  if (!source.missed) return distance > wanted;
  return distance >= wanted ? std::optional(true) : std::nullopt;
}

void MemoryTally::Add(const SampledAccess& sample) {
  profile_.Add(sample);
  const MemorySource& source = sample.access.source;
  if (source.operation == MemoryOperation::kStore) return;
  if (sample.access.latency_cycles != 0)
    Count(sample, clusters_[ClusterOf(sample)]);
  else if (source.level != MemoryLevel::kUnknown)
    ++without_latency_;
}

void MemoryTally::Count(const SampledAccess& sample, Cluster& cluster) {
  const absl::uint128 time = TimeOf(sample);
  for (size_t i = 0; i < kMemoryBorders; ++i) {
    Border& border = cluster[i];
    const std::optional<bool> beyond = IsBeyond(sample.access.source, static_cast<MemoryBorder>(i));
    if (!beyond.has_value() || time > kMostTime) {
      border.untold_time += std::min(time, kMostTime);
      ++border.untold;
      continue;
    }
    border.told_time += time;
    border.told_squares += time * time;
    if (*beyond) border.beyond_time += time;
    if (*beyond) border.beyond_squares += time * time;
    ++border.told;
  }
}

BeyondShare MemoryTally::Share(size_t border) const {
  BeyondShare out;
  out.without_latency = without_latency_;
  absl::uint128 told = 0;
  absl::uint128 untold = 0;
  for (const auto& [key, cluster] : clusters_) {
    out.samples += cluster[border].told;
    out.untold += cluster[border].untold;
    told += cluster[border].told_time;
    untold += cluster[border].untold_time;
  }
  if (without_latency_ > (out.samples + out.untold) / kFewWithout)
    out.why_not = NoShare::kNoLatency;
  else if (out.samples < kFewestSamples)
    out.why_not = NoShare::kTooFew;
  else
    out.why_not = untold >= told ? NoShare::kNotTold : NoShare::kNone;
  if (out.why_not != NoShare::kNone) return out;
  int shift = 0;  // of all times alike, until their sum fits
  while ((told >> shift) > kMostSum) ++shift;
  ClusterSums sums;
  for (const auto& [key, cluster] : clusters_) {
    const Border& of = cluster[border];
    if (of.told == 0) continue;
    sums.Add(absl::Uint128Low64(of.told_time >> shift), absl::Uint128Low64(of.beyond_time >> shift),
             /*each=*/0);
    sums.ww += of.told_squares >> 2 * shift;
    sums.ww_y += of.beyond_squares >> 2 * shift;
  }
  if (sums.x == 0) return out;
  out.share = static_cast<double>(sums.y) / static_cast<double>(sums.x);
  out.interval = ShareInterval(sums);
  return out;
}

MemoryFigures MemoryTally::Figures() const {
  MemoryFigures out{profile_, {}};
  for (size_t i = 0; i < kMemoryBorders; ++i) out.beyond[i] = Share(i);
  return out;
}

}  // namespace perfd
