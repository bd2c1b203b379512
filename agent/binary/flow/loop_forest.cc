#include "agent/binary/flow/loop_forest.h"

#include <algorithm>
#include <utility>

namespace perfd::agent {
namespace {

// Tarjan's strongly connected components of a part of the graph, without recursion.
class Components {
 public:
  explicit Components(const FlowGraph& graph)
      : graph_(graph),
        part_of_(graph.size(), 0),
        index_(graph.size(), 0),
        low_(graph.size(), 0),
        on_stack_(graph.size(), false) {}

  // Components that hold a cycle. The parts of later calls must lie inside parts of earlier ones or apart from them.
  std::vector<std::vector<uint32_t>> Find(const std::vector<uint32_t>& part) {
    ++part_;
    found_.clear();
    counter_ = 0;
    for (const uint32_t node : part) {
      part_of_[node] = part_;
      index_[node] = 0;
    }
    for (const uint32_t node : part)
      if (index_[node] == 0) Search(node);
    return std::move(found_);
  }

 private:
  void Enter(uint32_t node) {
    index_[node] = low_[node] = ++counter_;
    on_stack_[node] = true;
    stack_.push_back(node);
    path_.push_back({node, 0});
  }

  void Search(uint32_t start) {
    Enter(start);
    while (!path_.empty()) {
      auto& [node, next] = path_.back();
      if (next < graph_.successors[node].size()) {
        const uint32_t from = node;
        Visit(from, graph_.successors[from][next++]);
        continue;
      }
      const uint32_t done = node;
      path_.pop_back();
      if (!path_.empty()) low_[path_.back().first] = std::min(low_[path_.back().first], low_[done]);
      if (low_[done] == index_[done]) Close(done);
    }
  }

  void Visit(uint32_t from, uint32_t to) {
    if (part_of_[to] != part_) return;
    if (index_[to] == 0) {
      Enter(to);
    } else if (on_stack_[to]) {
      low_[from] = std::min(low_[from], index_[to]);
    }
  }

  void Close(uint32_t first) {
    std::vector<uint32_t> component;
    uint32_t node = 0;
    do {
      node = stack_.back();
      stack_.pop_back();
      on_stack_[node] = false;
      component.push_back(node);
    } while (node != first);
    const auto& next = graph_.successors[first];
    const bool cycle =
        component.size() > 1 || std::find(next.begin(), next.end(), first) != next.end();
    if (cycle) found_.push_back(std::move(component));
  }

  const FlowGraph& graph_;
  uint32_t part_ = 0;
  uint32_t counter_ = 0;
  std::vector<uint32_t> part_of_;
  std::vector<uint32_t> index_;  // 0: not visited
  std::vector<uint32_t> low_;
  std::vector<bool> on_stack_;
  std::vector<uint32_t> stack_;
  std::vector<std::pair<uint32_t, size_t>> path_;
  std::vector<std::vector<uint32_t>> found_;
};

Loop MakeLoop(std::vector<uint32_t> nodes, const DominatorTree& dominators) {
  Loop loop;
  loop.header = *std::min_element(
      nodes.begin(), nodes.end(),
      [&dominators](uint32_t a, uint32_t b) { return dominators.order(a) < dominators.order(b); });
  loop.irreducible = !std::all_of(nodes.begin(), nodes.end(), [&](uint32_t node) {
    return dominators.Dominates(loop.header, node);
  });
  std::sort(nodes.begin(), nodes.end());
  loop.nodes = std::move(nodes);
  return loop;
}

}  // namespace

std::vector<Loop> FindLoops(const FlowGraph& graph, const DominatorTree& dominators) {
  std::vector<uint32_t> part;
  for (uint32_t node = 0; node < graph.size(); ++node)
    if (dominators.reached(node)) part.push_back(node);
  Components components(graph);
  std::vector<Loop> loops;
  auto add = [&](std::vector<std::vector<uint32_t>> found, int32_t parent, int32_t depth) {
    for (std::vector<uint32_t>& nodes : found) {
      loops.push_back(MakeLoop(std::move(nodes), dominators));
      loops.back().parent = parent;
      loops.back().depth = depth;
    }
  };
  add(components.Find(part), -1, 1);
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].depth == kMaxLoopDepth) continue;
    part.clear();
    for (const uint32_t node : loops[i].nodes)
      if (node != loops[i].header) part.push_back(node);
    const size_t before = loops.size();
    add(components.Find(part), static_cast<int32_t>(i), loops[i].depth + 1);
    loops[i].innermost = loops.size() == before;
  }
  return loops;
}

}  // namespace perfd::agent
