#include "core/analysis/added_wall.h"

#include <algorithm>

namespace perfd {
namespace {

constexpr uint64_t kMostNs = uint64_t{1} << 60;  // foreign figures must not overflow

int64_t MeanNs(uint64_t sum_ns, size_t count) {
  return static_cast<int64_t>(std::min(sum_ns, kMostNs) / std::max<size_t>(1, count));
}

}  // namespace

AddedWall AddedWallOf(const Report& report) {
  AddedWall wall;
  wall.sampling_ns = MeanNs(report.overhead.kernel_sampling_ns, report.ranks.size());
  wall.agents_ns = MeanNs(report.overhead.agent_cpu_ns, report.nodes.size());
  wall.injection_ns =
      std::clamp<int64_t>(report.injection.added_wall_ns, 0, static_cast<int64_t>(kMostNs));
  int64_t covered_ns = 0;
  for (const NodeCoverage& node : report.nodes) covered_ns = std::max(covered_ns, node.covered_ns);
  if (covered_ns > 0)
    wall.ratio = static_cast<double>(wall.TotalNs()) / static_cast<double>(covered_ns);
  return wall;
}

}  // namespace perfd
