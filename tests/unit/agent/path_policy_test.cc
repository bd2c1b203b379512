#include <gtest/gtest.h>

#include "agent/pipeline/session_windows.h"

namespace perfd::agent {
namespace {

// So many samples in a loop, in a function outside of loops, and in the kernel.
Window WindowOf(uint64_t in_loop, uint64_t outside, uint64_t kernel = 0) {
  Window window;
  window.locations.resize(3);
  window.locations[0].category = Category::kLoop;
  window.locations[1].category = Category::kOutsideLoop;
  window.locations[2].category = Category::kKernel;
  window.rows = {{0, 0, in_loop, 0}, {0, 1, outside, 0}, {0, 2, kernel, 0}};
  return window;
}

TEST(PathPolicy, LooksForPathsWhereTheyCanTellSomething) {
  PathPolicy policy(CallPaths::kAuto);
  EXPECT_FALSE(policy.kept());
  EXPECT_FALSE(policy.wanted()) << "nobody knows yet";
  policy.Learn(WindowOf(0, 20));
  EXPECT_FALSE(policy.wanted()) << "too little is known";
  policy.Learn(WindowOf(300, 0));
  EXPECT_TRUE(policy.wanted()) << "20 of 320";
  policy.Learn(WindowOf(100, 0));
  EXPECT_FALSE(policy.wanted()) << "20 of 420";
}

TEST(PathPolicy, WhatIsNoLoopsWorkDoesNotCount) {
  PathPolicy policy(CallPaths::kAuto);
  Window waiting = WindowOf(100, 100);
  waiting.locations[1].loop_kind = LoopKind::kWaiting;
  policy.Learn(waiting);
  policy.Learn(WindowOf(100, 0, 100));
  EXPECT_FALSE(policy.wanted());
}

TEST(PathPolicy, WhatWasAskedForIsKept) {
  for (const CallPaths asked : {CallPaths::kDwarf, CallPaths::kFramePointer}) {
    const PathPolicy policy(asked);
    EXPECT_TRUE(policy.kept() && policy.wanted());
  }
  PathPolicy off(CallPaths::kOff);
  off.Learn(WindowOf(0, 1000));
  EXPECT_FALSE(off.kept() || off.wanted());
}

TEST(PathPolicy, CarriesWhatWasAskedFor) {
  const WindowPaths all{{"main"}, {{0, {0}, 1}}, {{1, 0, 5}}};
  WindowPaths paths = all;
  PathPolicy(CallPaths::kDwarf).Strip(paths);
  EXPECT_EQ(paths, all);
  PathPolicy(CallPaths::kAuto).Strip(paths);
  EXPECT_EQ(paths, (WindowPaths{{}, {}, {{1, 0, 5}}}));
  paths = all;
  PathPolicy(CallPaths::kFramePointer).Strip(paths);
  EXPECT_EQ(paths, (WindowPaths{{"main"}, {{0, {0}, 1}}, {}})) << "they pass over callers";
}

}  // namespace
}  // namespace perfd::agent
