// core/analysis/cluster_median.h - the median of values that come in clusters, with its 95 % interval.
//
// Shape    runs of one shadow resemble each other, so whole clusters are drawn: percentile bootstrap over clusters, then
//          widened for few clusters by t(n - 1) / 1.96. One cluster says nothing of the spread between instances: its
//          interval is the range of its values and at least +-kSingleClusterWidth.
// Units    any; the value and its interval have the unit of the values.
// Limits   at most kMaxValues values (the first ones) and kResamples draws: bounded time. Deterministic: no clock, no
//          random device, no distribution of the library.
// Source   Davison and Hinkley, Bootstrap Methods and their Application (1997), 3.8 (hierarchical data); the correction
//          by t: Hesterberg, "What Teachers Should Know About the Bootstrap", Am. Stat. 69 (2015), 5.3. One rank more:
//          Hahn and Meeker, Statistical Intervals (1991), 4.7; docs/adr/0035-some-ranks-and-shared-lines.md.
#ifndef CORE_ANALYSIS_CLUSTER_MEDIAN_H_
#define CORE_ANALYSIS_CLUSTER_MEDIAN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/model/loop_measurement.h"

namespace perfd {

struct ClusterValue {
  uint32_t cluster = 0;  // shadow
  double value = 0;      // finite
};

inline constexpr int kResamples = 400;
inline constexpr size_t kMaxValues = 4096;
inline constexpr double kSingleClusterWidth = 0.05;  // of the median

// All zero for no values.
Ratio ClusterMedian(std::span<const ClusterValue> values, uint64_t seed = 1);

// The median of `a` over the median of `b`, which are independent of each other (shadow against live).
Ratio MedianQuotient(std::span<const ClusterValue> a, std::span<const ClusterValue> b,
                     uint64_t seed = 1);

// `own`, one measured rank's figure with its interval, as wide as that of a rank which was not measured: such ranks may differ as
// much as those that were (`measured`, not empty), or, relatively, as the ranks' times in the loop do (`seconds`). Where neither tells
// anything, it is between nothing and all of the time.
Ratio OfAnotherRank(const Ratio& own, std::span<const double> measured,
                    std::span<const double> seconds);

// Of an even number: the mean of the middle two; 0 for none.
double Median(std::span<const double> values);
// Of an even number: the upper one of the middle two; 0 for none.
uint64_t Median(std::vector<uint64_t> values);

// Linear between order statistics, `at` 0..1; 0 for none. Source: Hyndman and Fan (1996), type 7.
double SortedQuantile(std::span<const double> sorted, double at);

}  // namespace perfd

#endif  // CORE_ANALYSIS_CLUSTER_MEDIAN_H_
