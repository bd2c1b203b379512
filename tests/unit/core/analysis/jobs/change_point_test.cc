#include "core/analysis/jobs/change_point.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace perfd {
namespace {

std::vector<LevelPoint> Points(const std::vector<double>& values, double half = 0.01) {
  std::vector<LevelPoint> points;
  for (const double value : values) points.push_back({value, value - half, value + half});
  return points;
}

TEST(ChangePointTest, SixPointsAreTheFewest) {
  EXPECT_EQ(FindChange({}).verdict, LevelVerdict::kTooFew);
  EXPECT_EQ(FindChange(Points({1, 1, 1, 2, 2})).verdict, LevelVerdict::kTooFew);
  const LevelChange change = FindChange(Points({1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(change.verdict, LevelVerdict::kUp);
  EXPECT_EQ(change.since, 3u);
  EXPECT_EQ(change.before, 1);
  EXPECT_EQ(change.after, 2);
}

TEST(ChangePointTest, FindsWhereTheLevelChanged) {
  const LevelChange up = FindChange(Points({5, 5.1, 4.9, 5, 5.1, 6, 6.1, 5.9, 6}));
  EXPECT_EQ(up.verdict, LevelVerdict::kUp);
  EXPECT_EQ(up.since, 5u);
  const LevelChange down = FindChange(Points({6, 6.1, 5.9, 6, 5, 5.1, 4.9}));
  EXPECT_EQ(down.verdict, LevelVerdict::kDown);
  EXPECT_EQ(down.since, 4u);
}

TEST(ChangePointTest, WhatIsNoLastingStepIsSteady) {
  EXPECT_EQ(FindChange(Points({5, 5, 5, 5, 5, 5, 5})).verdict, LevelVerdict::kSteady);
  // One or two profiles at the end may be anything.
  EXPECT_EQ(FindChange(Points({5, 5.1, 4.9, 5, 5.1, 5, 9})).verdict, LevelVerdict::kSteady);
  EXPECT_EQ(FindChange(Points({5, 5.1, 4.9, 5, 5.1, 9, 9})).verdict, LevelVerdict::kSteady);
  EXPECT_EQ(FindChange(Points({5, 5, 5, 9, 9, 9, 5, 5, 5})).verdict, LevelVerdict::kSteady);
}

TEST(ChangePointTest, IntervalsThatTouchAreNotApart) {
  EXPECT_EQ(FindChange(Points({1, 1, 1, 2, 2, 2}, 0.1)).verdict, LevelVerdict::kUp);
  EXPECT_EQ(FindChange(Points({1, 1, 1, 2, 2, 2}, 0.5)).verdict, LevelVerdict::kSteady);
}

TEST(ChangePointTest, ASmallStepIsNone) {
  // 4 % and 6 %, both far beyond the noise.
  EXPECT_EQ(FindChange(Points({100, 100, 100, 104, 104, 104})).verdict, LevelVerdict::kSteady);
  EXPECT_EQ(FindChange(Points({100, 100, 100, 106, 106, 106})).verdict, LevelVerdict::kUp);
}

TEST(ChangePointTest, OfEightPointsOneMayStray) {
  std::vector<double> values = {5, 5, 5, 5, 5, 5, 5, 8, 8, 8};
  values[2] = 9;
  EXPECT_EQ(FindChange(Points(values)).verdict, LevelVerdict::kSteady);  // seven before
  values.insert(values.begin(), 5);
  const LevelChange change = FindChange(Points(values));
  EXPECT_EQ(change.verdict, LevelVerdict::kUp);  // eight
  EXPECT_EQ(change.since, 8u);
}

TEST(ChangePointTest, FromNothing) {
  const LevelChange change = FindChange(Points({0, 0, 0, 0.2, 0.2, 0.2}));
  EXPECT_EQ(change.verdict, LevelVerdict::kUp);
  EXPECT_EQ(change.before, 0);
}

TEST(ChangePointTest, WhatIsNoNumberIsNotCompared) {
  for (const double odd : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    std::vector<LevelPoint> points = Points({1, 1, 1, 2, 2, 2});
    points[4].high = odd;
    EXPECT_EQ(FindChange(points).verdict, LevelVerdict::kTooFew);
  }
}

// Profiles of the same program stray by far more than their intervals: the rate of false alarms is what matters.
TEST(ChangePointTest, FewFalseAlarmsAndFewMissed) {
  std::mt19937 random(20261122);  // fixed: the same series in every run
  std::normal_distribution<double> stray(0, 0.04);
  constexpr int kSeries = 2000;
  for (const size_t length : {size_t{6}, size_t{10}, size_t{30}}) {
    int alarms = 0, found = 0;
    for (int i = 0; i < kSeries; ++i) {
      std::vector<double> steady, stepped;
      for (size_t k = 0; k < length; ++k) {
        steady.push_back(1 + stray(random));
        stepped.push_back((k < length / 2 ? 1 : 1.5) + stray(random));
      }
      const LevelVerdict verdict = FindChange(Points(steady, 0.005)).verdict;
      alarms += verdict == LevelVerdict::kUp || verdict == LevelVerdict::kDown ? 1 : 0;
      const LevelChange change = FindChange(Points(stepped, 0.005));
      found += change.verdict == LevelVerdict::kUp && change.since == length / 2 ? 1 : 0;
    }
    EXPECT_LE(alarms, kSeries / 20) << length;
    EXPECT_GE(found, kSeries * 9 / 10) << length;
  }
}

}  // namespace
}  // namespace perfd
