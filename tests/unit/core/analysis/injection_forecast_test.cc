#include "core/analysis/injection_forecast.h"

#include <gtest/gtest.h>

#include "core/analysis/injection_total.h"

namespace perfd {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1000 * kMs;

LoopMeasurement Rank(const char* node, PredictedCost cost) {
  LoopMeasurement rank;
  rank.node = node;
  rank.predicted = cost;
  return rank;
}

TEST(JobCost, RanksOfANodePauseTogetherNodesInTurn) {
  const LoopMeasurement a = Rank("n1", {30 * kMs, 1 * kMs, 300 * kMs});
  const LoopMeasurement b = Rank("n1", {20 * kMs, 5 * kMs, 310 * kMs});
  const LoopMeasurement c = Rank("n2", {7 * kMs, 2 * kMs, 340 * kMs});
  const LoopMeasurement refused = Rank("n3", {});
  const LoopMeasurement* ranks[] = {&a, &b, &c, &refused};
  EXPECT_EQ(JobCost(ranks), (PredictedCost{37 * kMs, 7 * kMs, 650 * kMs}));
  EXPECT_EQ(JobCost({}), PredictedCost{});
}

TEST(JobCost, SumsEnd) {
  PredictedCost sum{kMostCost, 1, 0};
  AddCost({kMostCost, kMostCost, 5}, sum);
  EXPECT_EQ(sum, (PredictedCost{kMostCost, kMostCost, 5}));
}

TEST(ForecastCost, SetsARangeAgainstTheBudget) {
  // 2 % of 60 s are 1.2 s.
  const CostForecast forecast = ForecastCost({25 * kMs, 5 * kMs, 120 * kMs}, 0.02, 60 * kSecond);
  EXPECT_EQ(forecast.least_ns, 30 * kMs);
  EXPECT_EQ(forecast.most_ns, 150 * kMs);
  EXPECT_EQ(forecast.most_shadows, 40);
  EXPECT_EQ(forecast.least_shadows, 8);
  EXPECT_DOUBLE_EQ(forecast.least_ratio, 4 * 0.030 / 60);
  EXPECT_DOUBLE_EQ(forecast.most_ratio, 4 * 0.150 / 60);
}

TEST(ForecastCost, NeverMoreThanTheBudget) {
  const CostForecast forecast = ForecastCost({1500 * kMs, 0, 0}, 0.02, 60 * kSecond);
  EXPECT_EQ(forecast.most_shadows, 0);
  EXPECT_DOUBLE_EQ(forecast.least_ratio, 0.02);
  EXPECT_DOUBLE_EQ(forecast.most_ratio, 0.02);
}

TEST(ForecastCost, NothingPredictedNothingForecast) {
  EXPECT_EQ(ForecastCost({}, 0.02, 60 * kSecond), CostForecast{});
  EXPECT_EQ(ForecastCost({1, 0, 0}, 0.02, 0).most_shadows, 0);
}

}  // namespace
}  // namespace perfd
