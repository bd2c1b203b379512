#include "agent/experiment/loop/group_means.h"

#include <algorithm>
#include <numeric>

namespace perfd::agent {

std::vector<uint64_t> GroupMeans(std::span<const uint64_t> cycles) {
  constexpr size_t kGroup = 10;  // instances whose mean is taken, as that of a batch is
  std::vector<uint64_t> means;
  for (; cycles.size() >= kGroup; cycles = cycles.subspan(kGroup)) {
    const auto group = cycles.first(kGroup);
    const uint64_t sum = std::accumulate(group.begin(), group.end(), uint64_t{0});
    means.push_back((sum - *std::max_element(group.begin(), group.end())) / (kGroup - 1));
  }
  return means;
}

}  // namespace perfd::agent
