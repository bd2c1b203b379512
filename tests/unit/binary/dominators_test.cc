#include "agent/binary/flow/dominators.h"

#include <gtest/gtest.h>

#include "tests/unit/binary/random_graph.h"

namespace perfd::agent {
namespace {

// By definition: a dominates b when b is reached from the root, and not any more once a is taken away.
TEST(DominatorTreeTest, EqualsDefinitionOnRandomGraphs) {
  std::mt19937_64 random(1);
  size_t dominations = 0;
  for (int round = 0; round < 3000; ++round) {
    const FlowGraph graph = RandomGraph(random);
    const DominatorTree tree(graph);
    const std::vector<bool> reached = ReachedWithout(graph, graph.root, kNobody);
    for (uint32_t a = 0; a < graph.size(); ++a) {
      const std::vector<bool> without = ReachedWithout(graph, graph.root, a);
      EXPECT_EQ(tree.reached(a), reached[a]);
      for (uint32_t b = 0; b < graph.size(); ++b) {
        const bool expected = reached[a] && reached[b] && (a == b || !without[b]);
        ASSERT_EQ(tree.Dominates(a, b), expected) << "round " << round << ": " << a << ", " << b;
        dominations += expected && a != b ? 1 : 0;
      }
    }
  }
  EXPECT_GT(dominations, 1000U);
}

TEST(DominatorTreeTest, DiamondMeetsAtItsTop) {
  const FlowGraph graph{{{1, 2}, {3}, {3}, {}}, 0};
  const DominatorTree tree(graph);
  EXPECT_EQ(tree.parent(3), 0U);
  EXPECT_EQ(tree.parent(0), 0U);
  EXPECT_EQ(tree.order(0), 0U);
  EXPECT_FALSE(tree.Dominates(1, 3));
}

}  // namespace
}  // namespace perfd::agent
