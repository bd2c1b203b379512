#include "agent/sample/switch_cost.h"

#include <gtest/gtest.h>

namespace perfd::agent {
namespace {

TEST(SwitchCostFromRounds, TheDifferenceOfUndisturbedRoundsTimesTheFarFactor) {
  EXPECT_DOUBLE_EQ(*SwitchCostFromRounds({800, 810, 5000}, {90'000, 90'000, 1900}),
                   1100 * kFarFactor);
  // Of many, one that is too quick does not count.
  const std::vector<double> without = {1, 790, 8000, 8000, 8000, 8000, 8000, 8000};
  const std::vector<double> with = {1, 1890, 9000, 9000, 9000, 9000, 9000, 9000};
  EXPECT_DOUBLE_EQ(*SwitchCostFromRounds(without, with), 1100 * kFarFactor);
}

TEST(SwitchCostFromRounds, IsNeverNegative) {
  EXPECT_EQ(*SwitchCostFromRounds({900, 900, 900}, {800, 800, 800}), 0);
}

TEST(SwitchCostFromRounds, RoundsThatWaitedTooLongDoNotCount) {
  EXPECT_DOUBLE_EQ(*SwitchCostFromRounds({-1, 800}, {1000, -1}), 200 * kFarFactor);
  EXPECT_TRUE(absl::IsDeadlineExceeded(SwitchCostFromRounds({-1}, {800}).status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(SwitchCostFromRounds({}, {}).status()));
}

}  // namespace
}  // namespace perfd::agent
