#include "core/analysis/added_wall.h"

#include <algorithm>

namespace perfd {
namespace {

constexpr uint64_t kMostNs = uint64_t{1} << 60;  // foreign figures must not overflow

int64_t OverNs(uint64_t sum_ns, double count) {
  return static_cast<int64_t>(static_cast<double>(std::min(sum_ns, kMostNs)) / count);
}

// How many of `count` there were at a time, when together they were there for `there_ns` of `covered_ns`. At least one: what
// was there for a part of the time only has not cost more than it did.
double AtATime(double there_ns, int64_t covered_ns, size_t count) {
  const double most = static_cast<double>(std::max<size_t>(1, count));
  if (there_ns <= 0 || covered_ns <= 0) return most;  // nobody told
  return std::clamp(there_ns / static_cast<double>(covered_ns), 1.0, most);
}

}  // namespace

AddedWall AddedWallOf(const Report& report) {
  int64_t covered_ns = 0;
  double all_nodes_ns = 0;
  for (const NodeCoverage& node : report.nodes) {
    covered_ns = std::max(covered_ns, node.covered_ns);
    all_nodes_ns += static_cast<double>(node.covered_ns);
  }
  const double lived_ns = static_cast<double>(report.overhead.rank_wall_ns);
  AddedWall wall;
  wall.sampling_ns = OverNs(report.overhead.kernel_sampling_ns,
                            AtATime(lived_ns, covered_ns, report.ranks.size()));
  wall.agents_ns = OverNs(report.overhead.lost_to_agent_ns,
                          AtATime(all_nodes_ns, covered_ns, report.nodes.size()));
  wall.injection_ns = std::clamp<int64_t>(report.findings.injection.added_wall_ns, 0,
                                          static_cast<int64_t>(kMostNs));
  if (covered_ns > 0)
    wall.ratio = static_cast<double>(wall.TotalNs()) / static_cast<double>(covered_ns);
  return wall;
}

}  // namespace perfd
