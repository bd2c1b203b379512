// core/analysis/memory/memory_figures.h - sampled accesses -> how much of the time of loads is spent beyond each level. Pure.
//
// Shape    MemoryTally: Add samples in any order, Merge, then Figures().
// Rules    the time of loads is their latency times what their sample stands for. Where loads that say where they were found have no
//          latency (IBS has none for those in L1), what is known of the time of others is not a share of it: there is none. A load counts for a border only where its source
//          tells on which side it was found: one from a fill buffer was beyond L1, and how far is not told. Of fewer samples than
//          kFewestSamples, or where half of the time is of loads that do not tell, there is no share.
// Units    shares 0..1, each with its 95 % interval: samples of one thread within a second are a cluster (share_interval.h).
// Source   include/uapi/linux/perf_event.h, PERF_MEM_LVL_*: "LFB" is a line that is on its way already.
#ifndef CORE_ANALYSIS_MEMORY_MEMORY_FIGURES_H_
#define CORE_ANALYSIS_MEMORY_MEMORY_FIGURES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "core/analysis/share_interval.h"
#include "core/model/memory/memory_profile.h"

namespace perfd {

enum class MemoryBorder : uint8_t { kL1, kL2, kL3, kNode };
inline constexpr size_t kMemoryBorders = 4;
inline constexpr uint64_t kFewestSamples = 30;

// Nothing: the source does not tell.
std::optional<bool> IsBeyond(const MemorySource& source, MemoryBorder border);

enum class NoShare : uint8_t { kNone, kTooFew, kNotTold, kNoLatency };

struct BeyondShare {
  NoShare why_not = NoShare::kTooFew;  // kNone: there is one
  double share = 0;
  Interval interval{};
  uint64_t samples = 0;          // of loads with a latency that tell
  uint64_t untold = 0;           // the same that do not
  uint64_t without_latency = 0;  // loads that say where they were found, but not how long they took
};

struct MemoryFigures {
  MemoryProfile profile{};
  std::array<BeyondShare, kMemoryBorders> beyond{};
};

class MemoryTally {
 public:
  void Add(const SampledAccess& sample);
  MemoryFigures Figures() const;

 private:
  struct Border {
    absl::uint128 told_time = 0;
    absl::uint128 beyond_time = 0;
    absl::uint128 untold_time = 0;
    absl::uint128 told_squares = 0;  // of the time of each
    absl::uint128 beyond_squares = 0;
    uint64_t told = 0;
    uint64_t untold = 0;
  };
  using Cluster = std::array<Border, kMemoryBorders>;
  static void Count(const SampledAccess& sample, Cluster& cluster);
  BeyondShare Share(size_t border) const;

  MemoryProfile profile_;
  uint64_t without_latency_ = 0;
  // By thread and second; what falls together is one cluster, so that there are 65,536 at most.
  absl::flat_hash_map<uint16_t, Cluster> clusters_;
};

}  // namespace perfd

#endif  // CORE_ANALYSIS_MEMORY_MEMORY_FIGURES_H_
