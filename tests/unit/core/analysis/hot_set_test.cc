#include "core/analysis/hot/hot_set.h"

#include <gtest/gtest.h>

namespace perfd {
namespace {

using Indices = std::vector<size_t>;

TEST(HotSet, HeaviestFirstUntilCoverageIsExceeded) {
  const std::vector<LoopWeight> loops = {{10, true}, {50, true}, {30, true}, {10, true}};
  EXPECT_EQ(HotSet(loops, 0.4, 12), (Indices{1}));
  EXPECT_EQ(HotSet(loops, 0.79, 12), (Indices{1, 2}));
}

TEST(HotSet, EqualToCoverageIsNotEnough) {
  const std::vector<LoopWeight> loops = {{10, true}, {50, true}, {30, true}, {10, true}};
  EXPECT_EQ(HotSet(loops, 0.5, 12), (Indices{1, 2}));
  EXPECT_EQ(HotSet(loops, 0.8, 12), (Indices{1, 2, 0}));
}

TEST(HotSet, WhatIsNotWantedCountsAsLoopTime) {
  const std::vector<LoopWeight> loops = {{60, false}, {30, true}, {10, true}};
  EXPECT_EQ(HotSet(loops, 0.25, 12), (Indices{1}));
  EXPECT_EQ(HotSet(loops, 0.8, 12), (Indices{1, 2}));
}

TEST(HotSet, NeverMoreThanMaxLoops) {
  const std::vector<LoopWeight> loops(20, LoopWeight{1, true});
  EXPECT_EQ(HotSet(loops, 0.8, 3), (Indices{0, 1, 2}));
  EXPECT_EQ(HotSet(loops, 1, 20).size(), 20u);
  EXPECT_TRUE(HotSet(loops, 0.8, 0).empty());
  EXPECT_TRUE(HotSet(loops, 0.8, -1).empty());
}

TEST(HotSet, LoopsWithoutSamplesAreCold) {
  const std::vector<LoopWeight> loops = {{0, true}, {5, true}};
  EXPECT_EQ(HotSet(loops, 1, 12), (Indices{1}));
  EXPECT_TRUE(HotSet({}, 0.8, 12).empty());
}

TEST(HotSet, ZeroCoverageStillShowsTheHeaviest) {
  const std::vector<LoopWeight> loops = {{1, true}, {5, true}};
  EXPECT_EQ(HotSet(loops, 0, 12), (Indices{1}));
}

}  // namespace
}  // namespace perfd
