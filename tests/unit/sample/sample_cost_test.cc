#include "agent/sample/cost/sample_cost.h"

#include <gtest/gtest.h>

namespace perfd::agent {
namespace {

// Readings every 40 ns; every hundredth is interrupted for `cost` more, with the sample's time inside the gap.
void Record(int64_t cost, int64_t samples, std::vector<int64_t>* readings,
            std::vector<int64_t>* times) {
  int64_t now = 1000;
  for (int64_t i = 0; i < samples * 100; ++i) {
    readings->push_back(now);
    now += 40;
    if (i % 100 == 50) {
      times->push_back(now - 5);
      now += cost;
    }
  }
}

TEST(CostFromGaps, FindsTheCostOfOneSample) {
  std::vector<int64_t> readings, times;
  Record(1700, 50, &readings, &times);
  EXPECT_EQ(*CostFromGaps(readings, times), 1700u);
}

TEST(CostFromGaps, OnePreemptionDoesNotMatter) {
  std::vector<int64_t> readings, times;
  Record(1700, 50, &readings, &times);
  for (size_t i = 2600; i < readings.size(); ++i) readings[i] += 10'000'000;
  for (size_t i = 26; i < times.size(); ++i) times[i] += 10'000'000;
  EXPECT_EQ(*CostFromGaps(readings, times), 1700u);
}

TEST(CostFromGaps, TooFewSamplesSayNothing) {
  std::vector<int64_t> readings, times;
  Record(1700, 14, &readings, &times);
  EXPECT_TRUE(absl::IsUnavailable(CostFromGaps(readings, times).status()));
  EXPECT_TRUE(absl::IsUnavailable(CostFromGaps({}, {}).status()));
  readings.clear();
  times.clear();
  Record(1700, 15, &readings, &times);
  EXPECT_TRUE(CostFromGaps(readings, times).ok());
}

}  // namespace
}  // namespace perfd::agent
