#include "agent/sample/pace/duty_cycle.h"

#include <gtest/gtest.h>

#include <cmath>

namespace perfd::agent {
namespace {

int OnSlots(DutyCycle& cycle, int slots) {
  int on = 0;
  for (int i = 0; i < slots; ++i) on += cycle.Next() ? 1 : 0;
  return on;
}

TEST(DutyCycle, IsOnAllTheTimeUntilToldOtherwise) {
  DutyCycle cycle(1);
  EXPECT_EQ(OnSlots(cycle, 100), 100);
}

TEST(DutyCycle, KeepsTheShareAtEveryTime) {
  for (const double share : {0.005, 0.1, 0.33, 0.5, 0.97}) {
    DutyCycle cycle(7);
    cycle.SetShare(share);
    int on = 0;
    for (int slot = 1; slot <= 2000; ++slot) {
      on += cycle.Next() ? 1 : 0;
      ASSERT_LE(std::abs(on - share * slot), 5.0) << share << " after " << slot;
    }
  }
}

TEST(DutyCycle, HasNoRhythm) {
  DutyCycle cycle(3);
  cycle.SetShare(0.25);
  int at_every_fourth[4] = {};
  for (int slot = 0; slot < 4000; ++slot) at_every_fourth[slot % 4] += cycle.Next() ? 1 : 0;
  for (const int count : at_every_fourth) EXPECT_NEAR(count, 250, 60);
}

TEST(DutyCycle, NothingOwedIsKeptWhenItIsOnAllTheTimeAgain) {
  DutyCycle cycle(3);
  cycle.SetShare(0.9);
  OnSlots(cycle, 5);
  cycle.SetShare(1);
  EXPECT_EQ(OnSlots(cycle, 10), 10);
  cycle.SetShare(0);
  EXPECT_EQ(OnSlots(cycle, 1000), 0);
}

TEST(DutyCycle, NonsenseIsOff) {
  DutyCycle cycle(3);
  cycle.SetShare(std::nan(""));
  EXPECT_EQ(OnSlots(cycle, 100), 0);
  cycle.SetShare(5);
  EXPECT_EQ(cycle.share(), 1);
}

}  // namespace
}  // namespace perfd::agent
