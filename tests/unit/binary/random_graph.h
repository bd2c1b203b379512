// Random flow graphs for comparing algorithms with their definitions.
#ifndef TESTS_UNIT_BINARY_RANDOM_GRAPH_H_
#define TESTS_UNIT_BINARY_RANDOM_GRAPH_H_

#include <random>
#include <vector>

#include "agent/binary/flow/control_flow.h"

namespace perfd::agent {

inline FlowGraph RandomGraph(std::mt19937_64& random) {
  FlowGraph graph;
  const uint32_t size = 1 + static_cast<uint32_t>(random() % 12);
  graph.successors.resize(size);
  graph.root = static_cast<uint32_t>(random() % size);
  const size_t edges = random() % (2 * size + 1);
  for (size_t i = 0; i < edges; ++i)
    graph.successors[random() % size].push_back(static_cast<uint32_t>(random() % size));
  return graph;
}

// Nodes that a walk from `start` reaches without entering `avoid`.
inline std::vector<bool> ReachedWithout(const FlowGraph& graph, uint32_t start, uint32_t avoid) {
  std::vector<bool> seen(graph.size(), false);
  if (start == avoid) return seen;
  std::vector<uint32_t> todo = {start};
  seen[start] = true;
  while (!todo.empty()) {
    const uint32_t node = todo.back();
    todo.pop_back();
    for (const uint32_t to : graph.successors[node]) {
      if (to == avoid || seen[to]) continue;
      seen[to] = true;
      todo.push_back(to);
    }
  }
  return seen;
}

inline constexpr uint32_t kNobody = UINT32_MAX;

}  // namespace perfd::agent

#endif  // TESTS_UNIT_BINARY_RANDOM_GRAPH_H_
