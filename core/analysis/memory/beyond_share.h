// core/analysis/memory/beyond_share.h - the time of loads -> the share of it that was spent beyond a border. Pure.
//
// Rules    where loads that say where they were found have no latency (IBS has none for those in L1), what is known of the time of
//          others is not a share of it: there is none. Of fewer samples than kFewestSamples, or where half of the time is of loads
//          that do not tell, there is no share.
// Units    shares 0..1, with their 95 % interval: what resembles each other is a cluster (share_interval.h).
#ifndef CORE_ANALYSIS_MEMORY_BEYOND_SHARE_H_
#define CORE_ANALYSIS_MEMORY_BEYOND_SHARE_H_

#include <cstdint>

#include "absl/numeric/int128.h"
#include "core/model/memory/load_times.h"
#include "core/model/memory/memory_report.h"

namespace perfd {

inline constexpr uint64_t kFewestSamples = 30;

// Over clusters: the time of loads that tell (x), and of those beyond (y).
struct BorderSquares {
  uint64_t clusters = 0;
  absl::uint128 xx = 0;
  absl::uint128 xy = 0;
  absl::uint128 yy = 0;

  void Add(const BorderTime& cluster);
  void Merge(const BorderSquares& other);
  bool operator==(const BorderSquares&) const = default;
};

// kNone: there is one.
NoShare WhyNoShare(const BorderTime& sums, uint64_t without_latency);

// Of one process, at L2; the share has no interval.
NoShare WhyNoShare(const RankMemory& rank);
double ShareOf(const RankMemory& rank);

// `sums`: of all clusters.
BeyondShare ShareBeyond(const BorderTime& sums, const BorderSquares& squares,
                        uint64_t without_latency);

}  // namespace perfd

#endif  // CORE_ANALYSIS_MEMORY_BEYOND_SHARE_H_
