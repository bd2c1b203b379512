// agent/binary/flow/dominators.h - which nodes every path from the root must pass.
//
// Shape    DominatorTree(graph); nodes the root does not reach have order kUnreached and dominate nothing.
// Threads  thread-safe (const).
// Source   Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm", 2001, figure 3.
#ifndef AGENT_BINARY_FLOW_DOMINATORS_H_
#define AGENT_BINARY_FLOW_DOMINATORS_H_

#include <cstdint>
#include <vector>

#include "agent/binary/flow/control_flow.h"

namespace perfd::agent {

class DominatorTree {
 public:
  static constexpr uint32_t kUnreached = UINT32_MAX;

  explicit DominatorTree(const FlowGraph& graph);

  bool reached(uint32_t node) const { return order_[node] != kUnreached; }
  // Position in reverse postorder of a depth-first search; the root is 0.
  uint32_t order(uint32_t node) const { return order_[node]; }
  // The root's parent is itself; kUnreached for nodes that are not reached.
  uint32_t parent(uint32_t node) const { return parent_[node]; }
  // Reflexive.
  bool Dominates(uint32_t above, uint32_t below) const;

 private:
  void NumberNodes(const FlowGraph& graph);
  void FindParents(const FlowGraph& graph);
  void NumberTree();
  uint32_t Intersect(uint32_t a, uint32_t b) const;

  std::vector<uint32_t> order_;
  std::vector<uint32_t> nodes_;  // reached nodes in reverse postorder
  std::vector<uint32_t> parent_;
  std::vector<uint32_t> enter_;  // interval of the node's subtree in the dominator tree
  std::vector<uint32_t> leave_;
};

}  // namespace perfd::agent

#endif  // AGENT_BINARY_FLOW_DOMINATORS_H_
