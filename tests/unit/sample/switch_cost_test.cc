#include "agent/sample/switch_cost.h"

#include <gtest/gtest.h>

namespace perfd {
namespace {

TEST(SwitchCostFromRounds, TheDifferenceOfTheMediansTimesTheFarFactor) {
  EXPECT_DOUBLE_EQ(*SwitchCostFromRounds({800, 810, 790}, {1900, 90'000, 1890}), 1100 * kFarFactor);
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
}  // namespace perfd
