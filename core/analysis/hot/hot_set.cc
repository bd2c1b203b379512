#include "core/analysis/hot/hot_set.h"

#include <algorithm>

namespace perfd {

std::vector<size_t> HotSet(std::span<const LoopWeight> loops, double coverage_ratio,
                           int32_t max_loops) {
  std::vector<size_t> order;
  double total = 0;
  for (size_t i = 0; i < loops.size(); ++i) {
    total += static_cast<double>(loops[i].weight);
    if (loops[i].taken && loops[i].weight > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return loops[a].weight > loops[b].weight; });

  const size_t limit = static_cast<size_t>(std::max(max_loops, 0));
  double covered = 0;
  size_t count = 0;
  while (count < order.size() && count < limit && covered <= coverage_ratio * total) {
    covered += static_cast<double>(loops[order[count]].weight);
    ++count;
  }
  order.resize(count);
  return order;
}

}  // namespace perfd
