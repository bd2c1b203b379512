// core/analysis/imbalance.h - how evenly a quantity is spread over the ranks.
//
// Shape    Spread over all ranks, those with nothing included.
// Threads  thread-safe (pure).
// Source   imbalance = max / mean: DeRose, Homer, Johnson, "Detecting Application Load Imbalance on
//          High End Massively Parallel Systems", Euro-Par 2007, section 3 (its percentage form).
#ifndef CORE_ANALYSIS_IMBALANCE_H_
#define CORE_ANALYSIS_IMBALANCE_H_

#include <cstddef>
#include <span>

namespace perfd {

struct Spread {
  double min = 0;
  double median = 0;  // of an even number: mean of the middle two
  double max = 0;
  double mean = 0;
  size_t worst = 0;      // index of the first maximum among the values given
  double imbalance = 1;  // max / mean; 1 when the mean is zero

  bool operator==(const Spread&) const = default;
};

// Over `values` (finite and >= 0) and `zeros` more ranks with nothing. No rank at all: all zero,
// imbalance 1.
Spread SpreadOf(std::span<const double> values, size_t zeros = 0);

}  // namespace perfd

#endif  // CORE_ANALYSIS_IMBALANCE_H_
