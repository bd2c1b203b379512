// core/analysis/share_interval.h - the 95 % interval of a share of samples.
//
// Shape    samples of one rank within one window resemble each other, so they are a cluster: the
//          interval follows from the spread between clusters and is never narrower than Wilson's.
// Units    samples; the share is sum_y / sum_x.
// Threads  thread-safe (pure).
// Source   Cochran, Sampling Techniques (3rd ed.), 6.3-6.4 (ratio estimate, eq. 6.13) and 3.12
//          (clusters of unequal size); Wilson, JASA 22 (1927) 209; Student's t by Abramowitz and
//          Stegun 26.7.5, tabulated up to 30 degrees of freedom.
#ifndef CORE_ANALYSIS_SHARE_INTERVAL_H_
#define CORE_ANALYSIS_SHARE_INTERVAL_H_

#include <cstdint>

#include "absl/numeric/int128.h"
#include "core/model/report.h"

namespace perfd {

// Sums over clusters; x: samples of the cluster, y: those of them in the place. All exact, so that
// they may be added up in any order.
struct ClusterSums {
  uint64_t clusters = 0;  // with x > 0
  uint64_t x = 0;
  uint64_t y = 0;
  absl::uint128 xx = 0;
  absl::uint128 xy = 0;
  absl::uint128 yy = 0;

  void Add(uint64_t cluster_x, uint64_t cluster_y);
  bool operator==(const ClusterSums&) const = default;
};

// The interval of y / x within 0..1; {0, 1} without samples (nothing is known).
Interval ShareInterval(const ClusterSums& sums);

// Wilson's interval for `hits` of `count` independent samples; {0, 1} for none.
Interval WilsonInterval(uint64_t hits, uint64_t count);

// The 97.5 % quantile of Student's t; at least one degree of freedom.
double StudentQuantile(uint64_t degrees);

}  // namespace perfd

#endif  // CORE_ANALYSIS_SHARE_INTERVAL_H_
