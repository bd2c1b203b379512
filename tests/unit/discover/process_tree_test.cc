#include "agent/discover/tree/process_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/procfs/fake_proc.h"

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;

TEST(ProcessTreeTest, BelowIsTheWholeTreeAndNothingElse) {
  const ProcessTree tree({{1, 0, 1}, {2, 1, 1}, {3, 2, 1}, {4, 2, 1}, {5, 1, 1}, {6, 4, 1}});
  EXPECT_THAT(tree.Below({2}, 10).pids, ElementsAre(2, 3, 4, 6));
  EXPECT_THAT(tree.Below({3, 5, 3}, 10).pids, ElementsAre(3, 5));
  EXPECT_THAT(tree.Descendants(2, 10), ElementsAre(3, 4, 6));
  EXPECT_TRUE(tree.HasChildren(4));
  EXPECT_FALSE(tree.HasChildren(6));
  EXPECT_EQ(tree.Find(7), nullptr);
}

TEST(ProcessTreeTest, ItIsBoundedAndSaysSo) {
  const ProcessTree tree({{2, 1, 1}, {3, 2, 1}, {4, 3, 1}});
  const auto part = tree.Below({2}, 2);
  EXPECT_THAT(part.pids, ElementsAre(2, 3));  // the nearest
  EXPECT_TRUE(part.cut);
  EXPECT_FALSE(tree.Below({2}, 3).cut);
}

TEST(ProcessTreeTest, ACycleOfReusedPidsEnds) {
  const ProcessTree tree({{2, 3, 1}, {3, 2, 1}});
  EXPECT_THAT(tree.Below({2}, 10).pids, ElementsAre(2, 3));
}

TEST(ProcessTreeTest, ZombiesAndShadowsAreNotThere) {
  FakeProc proc;
  proc.AddProcess({.pid = 2});
  proc.AddProcess({.pid = 3, .state = 'Z', .parent_pid = 2});
  proc.AddProcess({.pid = 4, .exit_signal = 0, .parent_pid = 2});
  proc.AddProcess({.pid = 5, .parent_pid = 2});
  EXPECT_THAT(ReadProcessTree(ProcFs(proc.root())).Below({2}, 10).pids, ElementsAre(2, 5));
}

}  // namespace
}  // namespace perfd::agent
