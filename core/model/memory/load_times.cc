#include "core/model/memory/load_times.h"

#include <algorithm>

namespace perfd {
namespace {

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

}  // namespace

uint64_t LoadCycles(const SampledAccess& sample) {
  if (sample.access.source.operation == MemoryOperation::kStore) return 0;
  const absl::uint128 cycles =
      absl::uint128(sample.access.latency_cycles) * std::max<uint64_t>(sample.period, 1);
  return absl::Uint128Low64(std::min<absl::uint128>(cycles, kMostSampleCycles + 1));
}

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

void BorderTime::Add(uint64_t cycles, std::optional<bool> beyond) {
  const bool fits = cycles <= kMostSampleCycles && told_cycles + cycles <= kMostLoadCycles;
  if (!beyond.has_value() || !fits) {
    ++untold;
    untold_cycles = std::min(untold_cycles + cycles, kMostLoadCycles);
    return;
  }
  ++told;
  told_cycles += cycles;
  told_squares += absl::uint128(cycles) * cycles;
  if (!*beyond) return;
  beyond_cycles += cycles;
  beyond_squares += absl::uint128(cycles) * cycles;
}

void BorderTime::Merge(const BorderTime& other) {
  told = Sum(told, other.told);
  untold = Sum(untold, other.untold);
  told_cycles = Sum(told_cycles, other.told_cycles);
  beyond_cycles = Sum(beyond_cycles, other.beyond_cycles);
  untold_cycles = Sum(untold_cycles, other.untold_cycles);
  told_squares = Sum(told_squares, other.told_squares);
  beyond_squares = Sum(beyond_squares, other.beyond_squares);
}

void LoadTimes::Add(const SampledAccess& sample) {
  const MemorySource& source = sample.access.source;
  if (source.operation == MemoryOperation::kStore) return;
  if (sample.access.latency_cycles == 0) {
    if (source.level != MemoryLevel::kUnknown) ++without_latency;
    return;
  }
  const uint64_t cycles = LoadCycles(sample);
  for (size_t i = 0; i < kMemoryBorders; ++i)
    borders[i].Add(cycles, IsBeyond(source, static_cast<MemoryBorder>(i)));
}

void LoadTimes::Merge(const LoadTimes& other) {
  for (size_t i = 0; i < kMemoryBorders; ++i) borders[i].Merge(other.borders[i]);
  without_latency = Sum(without_latency, other.without_latency);
}

}  // namespace perfd
