#include "core/analysis/memory/memory_figures.h"

#include <algorithm>

namespace perfd {
namespace {

constexpr uint64_t kNsPerS = 1'000'000'000;
// Of one sample: a cluster stays far below what ClusterSums can hold (share_interval.h).
constexpr uint64_t kMostTime = uint64_t{1} << 34;

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

uint64_t TimeOf(const SampledAccess& sample) {
  const uint64_t period = std::max<uint64_t>(sample.period, 1);
  const uint64_t latency = sample.access.latency_cycles;
  return latency > kMostTime / period ? kMostTime : latency * period;
}

}  // namespace

std::optional<bool> IsBeyond(const MemorySource& source, MemoryBorder border) {
  if (border == MemoryBorder::kNode)
    return source.missed ? std::nullopt : IsBeyondNode(source.level);
  const int wanted = DistanceOf(border);
  if (source.level == MemoryLevel::kFillBuffer)
    return border == MemoryBorder::kL1 ? std::optional(true) : std::nullopt;
  const int distance = DistanceOf(source.level);
  if (distance == 0) return std::nullopt;
  if (!source.missed) return distance > wanted;
  return distance >= wanted ? std::optional(true) : std::nullopt;
}

void MemoryTally::Add(const SampledAccess& sample) {
  profile_.Add(sample);
  const MemorySource& source = sample.access.source;
  if (source.operation == MemoryOperation::kStore || sample.access.latency_cycles == 0) return;
  Cluster& cluster = clusters_[ClusterOf(sample)];
  const uint64_t time = TimeOf(sample);
  for (size_t i = 0; i < kMemoryBorders; ++i) {
    Border& border = cluster[i];
    const std::optional<bool> beyond = IsBeyond(source, static_cast<MemoryBorder>(i));
    if (!beyond.has_value()) {
      border.untold_time += time;
      ++border.untold;
      continue;
    }
    border.told_time += time;
    if (*beyond) border.beyond_time += time;
    ++border.told;
  }
}

MemoryFigures MemoryTally::Figures() const {
  MemoryFigures out{profile_, {}};
  for (size_t i = 0; i < kMemoryBorders; ++i) {
    BeyondShare& share = out.beyond[i];
    ClusterSums sums;
    absl::uint128 told = 0;
    absl::uint128 untold = 0;
    for (const auto& [key, cluster] : clusters_) {
      const Border& border = cluster[i];
      share.samples += border.told;
      share.untold += border.untold;
      told += border.told_time;
      untold += border.untold_time;
      if (border.told > 0)
        sums.Add(border.told_time, border.beyond_time, border.told_time / border.told);
    }
    if (share.samples < kFewestSamples) continue;
    share.why_not = untold >= told ? NoShare::kNotTold : NoShare::kNone;
    if (share.why_not != NoShare::kNone) continue;
    share.share = static_cast<double>(sums.y) / static_cast<double>(sums.x);
    share.interval = ShareInterval(sums);
  }
  return out;
}

}  // namespace perfd
