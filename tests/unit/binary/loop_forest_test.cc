#include "agent/binary/flow/loop_forest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/unit/binary/random_graph.h"

namespace perfd::agent {
namespace {

using Body = std::set<uint32_t>;

// By definition: the natural loop of a header h is h and all nodes that reach, without passing h, a node with an edge to
// h that h dominates.
std::map<uint32_t, Body> NaturalLoops(const FlowGraph& graph, const DominatorTree& tree) {
  std::map<uint32_t, Body> loops;
  for (uint32_t from = 0; from < graph.size(); ++from) {
    for (const uint32_t header : graph.successors[from]) {
      if (!tree.Dominates(header, from)) continue;
      Body& body = loops[header];
      body.insert(header);
      for (uint32_t node = 0; node < graph.size(); ++node) {
        if (tree.reached(node) && node != header && ReachedWithout(graph, node, header)[from])
          body.insert(node);
      }
    }
  }
  return loops;
}

// By definition: reducible when nothing but back edges closes a cycle.
bool IsReducible(const FlowGraph& graph, const DominatorTree& tree) {
  FlowGraph forward = graph;
  for (uint32_t from = 0; from < graph.size(); ++from)
    std::erase_if(forward.successors[from],
                  [&](uint32_t to) { return tree.Dominates(to, from) || !tree.reached(from); });
  for (uint32_t node = 0; node < graph.size(); ++node)
    for (const uint32_t to : forward.successors[node])
      if (ReachedWithout(forward, to, kNobody)[node]) return false;
  return true;
}

void CheckNesting(const std::vector<Loop>& loops) {
  for (size_t i = 0; i < loops.size(); ++i) {
    const Loop& loop = loops[i];
    bool has_child = false;
    for (const Loop& other : loops) has_child |= other.parent == static_cast<int32_t>(i);
    EXPECT_EQ(loop.innermost, !has_child);
    if (loop.parent < 0) {
      EXPECT_EQ(loop.depth, 1);
      continue;
    }
    const Loop& parent = loops[static_cast<size_t>(loop.parent)];
    EXPECT_EQ(loop.depth, parent.depth + 1);
    EXPECT_LT(loop.nodes.size(), parent.nodes.size());
    EXPECT_TRUE(std::includes(parent.nodes.begin(), parent.nodes.end(), loop.nodes.begin(),
                              loop.nodes.end()));
  }
}

TEST(LoopForestTest, EqualsNaturalLoopsOnRandomGraphs) {
  std::mt19937_64 random(2);
  size_t reducible = 0;
  size_t irreducible = 0;
  for (int round = 0; round < 3000; ++round) {
    const FlowGraph graph = RandomGraph(random);
    const DominatorTree tree(graph);
    const std::vector<Loop> loops = FindLoops(graph, tree);
    CheckNesting(loops);
    std::map<uint32_t, Body> found;
    bool any_irreducible = false;
    for (const Loop& loop : loops) {
      EXPECT_TRUE(found.emplace(loop.header, Body(loop.nodes.begin(), loop.nodes.end())).second);
      any_irreducible |= loop.irreducible;
    }
    const std::map<uint32_t, Body> natural = NaturalLoops(graph, tree);
    ASSERT_EQ(any_irreducible, !IsReducible(graph, tree)) << "round " << round;
    if (!any_irreducible) {
      ASSERT_EQ(found, natural) << "round " << round;
      reducible += loops.empty() ? 0 : 1;
      continue;
    }
    ++irreducible;
    // Every natural loop stays visible; one that shares its header with a region of several entries is part of it.
    for (const auto& [header, body] : natural) {
      ASSERT_TRUE(found.count(header)) << "round " << round << " header " << header;
      EXPECT_TRUE(
          std::includes(found[header].begin(), found[header].end(), body.begin(), body.end()));
    }
  }
  EXPECT_GT(reducible, 100U);
  EXPECT_GT(irreducible, 100U);
}

TEST(LoopForestTest, DepthIsBounded) {
  // Node i goes on to i + 1 and back to itself and all before it: a nest as deep as there are nodes.
  FlowGraph graph;
  const uint32_t size = kMaxLoopDepth + 20;
  for (uint32_t i = 0; i < size; ++i) {
    graph.successors.push_back({});
    if (i + 1 < size) graph.successors[i].push_back(i + 1);
    if (i > 0) graph.successors[i].push_back(i - 1);
  }
  int32_t deepest = 0;
  for (const Loop& loop : FindLoops(graph, DominatorTree(graph)))
    deepest = std::max(deepest, loop.depth);
  EXPECT_EQ(deepest, kMaxLoopDepth);
}

}  // namespace
}  // namespace perfd::agent
