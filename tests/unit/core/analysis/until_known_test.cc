#include "core/analysis/hot/until_known.h"

#include <gtest/gtest.h>

namespace perfd {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kLongest = 600 * kSecond;
const LoopLearning kSettled = {.settled = true, .open_ratio = 0, .learnt = 31};

LoopLearning HalfKnown(uint64_t learnt) {
  return {.settled = false, .open_ratio = 0.5, .learnt = learnt};
}

TEST(UntilKnownTest, EndsWhenAllIsKnownOfLoopsThatStayTheSame) {
  UntilKnown known;
  EXPECT_EQ(known.End(1000 * kSecond), EndReason::kNone) << "nothing was measured yet";
  known.Begin(100 * kSecond);
  known.ChangeLoops(105 * kSecond);
  known.Know(std::vector{kSettled, kSettled}, kLongest, 110 * kSecond);
  EXPECT_EQ(known.progress().known, 2);
  EXPECT_EQ(known.End(120 * kSecond), EndReason::kNone) << "the same loops for 15 s only";
  EXPECT_EQ(known.End(125 * kSecond), EndReason::kKnown);
  known.ChangeLoops(124 * kSecond);
  EXPECT_EQ(known.End(125 * kSecond), EndReason::kNone) << "another phase has begun";
  EXPECT_EQ(known.End(144 * kSecond), EndReason::kKnown);
}

TEST(UntilKnownTest, OneOpenLoopKeepsItGoingAsLongAsSomethingIsLearnt) {
  UntilKnown known;
  known.ChangeLoops(100 * kSecond);
  for (uint64_t i = 1; i <= 10; ++i) {
    const auto now = static_cast<int64_t>(100 + 60 * i) * kSecond;
    known.Know(std::vector{kSettled, HalfKnown(i)}, kLongest, now);
    EXPECT_EQ(known.End(now), EndReason::kNone) << i;
  }
  for (int64_t s = 1; s < 120; s += 7) {
    known.Know(std::vector{kSettled, HalfKnown(10)}, kLongest, (700 + s) * kSecond);
    EXPECT_EQ(known.End((700 + s) * kSecond), EndReason::kNone) << s;
  }
  EXPECT_EQ(known.End(820 * kSecond), EndReason::kNothingLearnt);
}

TEST(UntilKnownTest, AJobWithoutAHotLoopIsNotWaitedForLong) {
  UntilKnown known;
  known.Begin(100 * kSecond);
  known.Begin(200 * kSecond);
  EXPECT_EQ(known.End(219 * kSecond), EndReason::kNone);
  EXPECT_EQ(known.End(220 * kSecond), EndReason::kNothingLearnt);
}

TEST(UntilKnownTest, WhatIsLeftIsForetoldFromWhatWasLearnt) {
  UntilKnown known;
  known.ChangeLoops(100 * kSecond);
  known.Know(std::vector{LoopLearning(), LoopLearning()}, kLongest, 140 * kSecond);
  EXPECT_EQ(known.progress().left_ns, 0) << "nothing is known yet";
  EXPECT_EQ(known.DoneRatio(140 * kSecond), 0);
  // A quarter of all in 40 s.
  known.Know(std::vector{HalfKnown(1), LoopLearning()}, kLongest, 140 * kSecond);
  EXPECT_EQ(known.progress().left_ns, 120 * kSecond);
  EXPECT_DOUBLE_EQ(known.DoneRatio(140 * kSecond), 0.25);
  known.Know(std::vector{HalfKnown(1), LoopLearning()}, 70 * kSecond, 140 * kSecond);
  EXPECT_EQ(known.progress().left_ns, 70 * kSecond) << "it ends before";
  known.ChangeLoops(141 * kSecond);
  known.Know(std::vector{kSettled, kSettled}, kLongest, 145 * kSecond);
  EXPECT_EQ(known.progress().left_ns, 16 * kSecond) << "the loops must stay the same";
}

TEST(UntilKnownTest, SilenceIsLongerWhereShadowsAreDear) {
  EXPECT_EQ(LimitsFor({}).silent_ns, 120 * kSecond);
  EXPECT_EQ(LimitsFor({.overhead_ratio = 0.005}).silent_ns, 300 * kSecond);
  EXPECT_EQ(LimitsFor({.overhead_ratio = 0.0001}).silent_ns, kLongestUntilKnownNs);
  EXPECT_EQ(LimitsFor({.overhead_ratio = 0}).silent_ns, 120 * kSecond);
}

TEST(UntilKnownTest, ANodeThatComesIsWaitedFor) {
  UntilKnown known;
  known.Restart(50 * kSecond);
  known.ChangeLoops(100 * kSecond);
  known.Know(std::vector{kSettled}, kLongest, 130 * kSecond);
  known.Restart(131 * kSecond);
  EXPECT_EQ(known.End(132 * kSecond), EndReason::kNone);
  EXPECT_EQ(known.End(151 * kSecond), EndReason::kKnown);
  EXPECT_EQ(known.DoneRatio(151 * kSecond), 1);
}

TEST(UntilKnownTest, SharesAreKnownWithinThreePoints) {
  UntilKnown known;
  known.KnowShares({.hot = 3, .widest = 0.06, .samples = 100}, kLongest, 100 * kSecond);
  EXPECT_EQ(known.progress().known, 0);
  EXPECT_DOUBLE_EQ(known.progress().done_ratio, 0.25);
  known.KnowShares({.hot = 3, .widest = 0.029, .samples = 500}, kLongest, 130 * kSecond);
  EXPECT_EQ(known.progress().known, 3);
  EXPECT_EQ(known.End(130 * kSecond), EndReason::kKnown);
  known.KnowShares({.hot = 3, .widest = -1, .samples = 500}, kLongest, 140 * kSecond);
  EXPECT_EQ(known.End(140 * kSecond), EndReason::kNone)
      << "a share without an interval is not known";
  known.KnowShares({.hot = 0, .widest = 0, .samples = 500}, kLongest, 300 * kSecond);
  EXPECT_EQ(known.End(300 * kSecond), EndReason::kNothingLearnt) << "no sample since";
}

}  // namespace
}  // namespace perfd
