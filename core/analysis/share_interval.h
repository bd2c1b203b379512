// core/analysis/share_interval.h - the 95 % interval of a share of time that samples stand for.
//
// Shape    samples of one rank within one window resemble each other, so they are a cluster: the interval follows from the
//          spread between clusters and is never narrower than Wilson's for as many independent samples as there were.
// Units    x, y: ns of CPU time, or anything else that samples stand for; the share is sum_y / sum_x.
// Bounds   a window has at most 2^50 ns (daemon/aggregate/row_time.h): 2^14 of the largest fill x, 2^28 the squares. A window
//          of 5 s on 1024 CPUs has 2^42.2 ns: 2^21 fill x, 2^43 the squares.
// Threads  thread-safe (pure).
// Source   Cochran, Sampling Techniques (3rd ed.), 6.3-6.4 (ratio estimate, eq. 6.13) and 3.12 (clusters of unequal size);
//          Wilson, JASA 22 (1927) 209, with an effective number of samples as in Korn and Graubard, Survey Methodology 24
//          (1998) 193; Student's t by Abramowitz and Stegun 26.7.5, tabulated up to 30 degrees of freedom.
#ifndef CORE_ANALYSIS_SHARE_INTERVAL_H_
#define CORE_ANALYSIS_SHARE_INTERVAL_H_

#include <cstdint>

#include "absl/numeric/int128.h"
#include "core/model/report.h"

namespace perfd {

// Sums over clusters; x: what all samples of the cluster stand for, y: those of them in the place. All exact, so that they may
// be added up in any order.
struct ClusterSums {
  uint64_t clusters = 0;  // with x > 0
  uint64_t x = 0;
  uint64_t y = 0;
  absl::uint128 xx = 0;
  absl::uint128 xy = 0;
  absl::uint128 yy = 0;
  absl::uint128 ww = 0;    // over samples: what each stands for, squared
  absl::uint128 ww_y = 0;  // the same over those in the place

  // `each`: what every sample of the cluster stands for.
  void Add(uint64_t cluster_x, uint64_t cluster_y, uint64_t each = 1);
  bool operator==(const ClusterSums&) const = default;
};

// The interval of y / x within 0..1; {0, 1} without samples (nothing is known).
Interval ShareInterval(const ClusterSums& sums);

// The number of samples, each of which stands for as much as any other, that would tell the share as well as these; all of
// them when they stand for equal parts. A place of few samples has few, whatever each stands for.
double EffectiveSamples(const ClusterSums& sums);

// Wilson's interval for a share seen in `count` independent samples; {0, 1} for none.
Interval WilsonInterval(double share, double count);

// The 97.5 % quantile of Student's t; at least one degree of freedom.
double StudentQuantile(uint64_t degrees);

}  // namespace perfd

#endif  // CORE_ANALYSIS_SHARE_INTERVAL_H_
