#include "agent/experiment/plan/group_means.h"

#include <algorithm>
#include <numeric>

namespace perfd::agent {

std::vector<uint64_t> GroupMeans(std::span<const uint64_t> cycles) {
  std::vector<uint64_t> means;
  for (; cycles.size() >= kGroupInstances; cycles = cycles.subspan(kGroupInstances)) {
    const auto group = cycles.first(kGroupInstances);
    const uint64_t sum = std::accumulate(group.begin(), group.end(), uint64_t{0});
    means.push_back((sum - *std::max_element(group.begin(), group.end())) / (kGroupInstances - 1));
  }
  return means;
}

}  // namespace perfd::agent
