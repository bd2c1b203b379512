#include "core/analysis/imbalance.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace perfd {

Spread SpreadOf(std::span<const double> values, size_t zeros) {
  Spread spread;
  if (values.empty()) return spread;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t count = sorted.size() + zeros;
  const auto at = [&](size_t i) { return i < zeros ? 0.0 : sorted[i - zeros]; };
  spread.min = at(0);
  spread.max = sorted.back();
  spread.median = count % 2 == 1 ? at(count / 2) : (at(count / 2 - 1) + at(count / 2)) / 2;
  // Summed in sorted order: the same figures for any order of the ranks.
  spread.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(count);
  spread.worst = static_cast<size_t>(
      std::distance(values.begin(), std::max_element(values.begin(), values.end())));
  // A mean rounded above the maximum must not give an imbalance below 1.
  if (spread.mean > 0) spread.imbalance = std::max(1.0, spread.max / spread.mean);
  return spread;
}

}  // namespace perfd
