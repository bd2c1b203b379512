#include "agent/binary/flow/dominators.h"

#include <algorithm>
#include <utility>

namespace perfd::agent {

DominatorTree::DominatorTree(const FlowGraph& graph)
    : order_(graph.size(), kUnreached),
      parent_(graph.size(), kUnreached),
      enter_(graph.size(), 0),
      leave_(graph.size(), 0) {
  NumberNodes(graph);
  FindParents(graph);
  NumberTree();
}

bool DominatorTree::Dominates(uint32_t above, uint32_t below) const {
  return reached(above) && reached(below) && enter_[above] <= enter_[below] &&
         leave_[below] <= leave_[above];
}

void DominatorTree::NumberNodes(const FlowGraph& graph) {
  std::vector<bool> seen(graph.size(), false);
  std::vector<std::pair<uint32_t, size_t>> stack = {{graph.root, 0}};
  seen[graph.root] = true;
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next == graph.successors[node].size()) {
      nodes_.push_back(node);
      stack.pop_back();
      continue;
    }
    const uint32_t to = graph.successors[node][next++];
    if (seen[to]) continue;
    seen[to] = true;
    stack.push_back({to, 0});
  }
  std::reverse(nodes_.begin(), nodes_.end());
  for (uint32_t i = 0; i < nodes_.size(); ++i) order_[nodes_[i]] = i;
}

uint32_t DominatorTree::Intersect(uint32_t a, uint32_t b) const {
  while (a != b) {
    while (order_[a] > order_[b]) a = parent_[a];
    while (order_[b] > order_[a]) b = parent_[b];
  }
  return a;
}

void DominatorTree::FindParents(const FlowGraph& graph) {
  std::vector<std::vector<uint32_t>> predecessors(graph.size());
  for (const uint32_t node : nodes_)
    for (const uint32_t to : graph.successors[node]) predecessors[to].push_back(node);
  parent_[graph.root] = graph.root;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 1; i < nodes_.size(); ++i) {
      const uint32_t node = nodes_[i];
      uint32_t parent = kUnreached;
      for (const uint32_t from : predecessors[node]) {
        if (parent_[from] == kUnreached) continue;
        parent = parent == kUnreached ? from : Intersect(from, parent);
      }
      if (parent_[node] == parent) continue;
      parent_[node] = parent;
      changed = true;
    }
  }
}

// Parents come before their children in reverse postorder, so sizes add up backwards and intervals forwards.
void DominatorTree::NumberTree() {
  std::vector<uint32_t> size(order_.size(), 1);
  for (size_t i = nodes_.size(); i-- > 1;) size[parent_[nodes_[i]]] += size[nodes_[i]];
  std::vector<uint32_t> next(order_.size(), 0);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const uint32_t node = nodes_[i];
    if (i > 0) {
      enter_[node] = next[parent_[node]];
      next[parent_[node]] += size[node];
    }
    leave_[node] = enter_[node] + size[node];
    next[node] = enter_[node] + 1;
  }
}

}  // namespace perfd::agent
