#include "agent/sample/cost/rounds.h"

#include <gtest/gtest.h>

namespace perfd::agent {
namespace {

TEST(CostFromRounds, IsTheDifferenceOfUndisturbedRounds) {
  EXPECT_DOUBLE_EQ(*CostFromRounds("it", {800, 810, 5000}, {90'000, 90'000, 1900}), 1100);
  // Of many, one that is too quick does not count.
  const std::vector<double> without = {1, 790, 8000, 8000, 8000, 8000, 8000, 8000};
  const std::vector<double> with = {1, 1890, 9000, 9000, 9000, 9000, 9000, 9000};
  EXPECT_DOUBLE_EQ(*CostFromRounds("it", without, with), 1100);
}

TEST(CostFromRounds, IsNeverNegative) {
  EXPECT_EQ(*CostFromRounds("it", {900, 900, 900}, {800, 800, 800}), 0);
}

TEST(CostFromRounds, RoundsThatWaitedTooLongDoNotCount) {
  EXPECT_DOUBLE_EQ(*CostFromRounds("it", {-1, 800}, {1000, -1}), 200);
  EXPECT_TRUE(absl::IsDeadlineExceeded(CostFromRounds("it", {-1}, {800}).status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(CostFromRounds("it", {}, {}).status()));
}

TEST(MeasureCost, TakesTurnsAndEndsWithTheFirstError) {
  int rounds = 0;
  EXPECT_DOUBLE_EQ(*MeasureCost(
                       "it", 3, [&] { return 10.0 + 100 * (rounds++ % 2); },
                       [&]() -> absl::StatusOr<double> { return 17.0 - 100 * (rounds++ % 2 - 1); }),
                   7);
  EXPECT_EQ(rounds, 6);
  const auto refused = MeasureCost(
      "it", 3, [] { return 1.0; },
      [&]() -> absl::StatusOr<double> {
        ++rounds;
        return absl::PermissionDeniedError("no");
      });
  EXPECT_TRUE(absl::IsPermissionDenied(refused.status()));
  EXPECT_EQ(rounds, 7);
}

}  // namespace
}  // namespace perfd::agent
