#include "agent/sample/access_events.h"

#include <gtest/gtest.h>

namespace perfd::agent {
namespace {

FurtherEvent Every(uint64_t period) {
  FurtherEvent event;
  event.attr.sample_period = period;
  return event;
}

void CountMany(AccessEvents& events, size_t event, int samples) {
  for (int i = 0; i < samples; ++i) events.Count(event);
}

TEST(AccessEventsTest, AQuarterAsManyAsOfTimeOverAllEvents) {
  AccessEvents events;
  events.Add(Every(100'000), 1);
  events.Add(Every(100'000), 1);
  CountMany(events, 0, 800);
  CountMany(events, 1, 400);  // 100 are wanted
  CountMany(events, 2, 25);
  const auto changes = events.Adjust(4);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].event, 0u);
  EXPECT_EQ(changes[0].period, 400'000u);
  EXPECT_EQ(changes[1].period, 50'000u) << "quicker by halves";
  EXPECT_EQ(events.at(0).attr.sample_period, 400'000u) << "for what is opened from now on";
  EXPECT_TRUE(events.Adjust(4).empty()) << "counted anew";
}

TEST(AccessEventsTest, WhatIsNearlyRightIsLetBe) {
  AccessEvents events;
  events.Add(Every(100'000), 1);
  for (const int samples : {51, 100, 200}) {
    CountMany(events, 0, 400);
    CountMany(events, 1, samples);
    EXPECT_TRUE(events.Adjust(1).empty()) << samples;
  }
}

TEST(AccessEventsTest, AFloodIsSlowedDownAtOnceAndSaysNothingOfTheOthers) {
  AccessEvents events;
  events.Add(Every(100'000), 1);
  events.Add(Every(100'000), 1);
  CountMany(events, 2, 5);
  CountMany(events, 0, 399);
  EXPECT_TRUE(events.Adjust(10).empty());
  CountMany(events, 1, 400);
  EXPECT_TRUE(events.Adjust(10).empty()) << "of ten threads no flood";
  CountMany(events, 1, 1);
  const auto changes = events.Adjust(10);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].event, 0u);
  AccessEvents alone;
  alone.Add(Every(100'000), 1);
  CountMany(alone, 1, 221);
  EXPECT_EQ(alone.Adjust(1).at(0).period, 6'400'000u)
      << "64 times at most, also without any of time";
}

TEST(AccessEventsTest, WhatNeverHadASampleIsLetBeAndTakesNoShare) {
  AccessEvents events;
  events.Add(Every(100'000), 1);
  events.Add(Every(100'000), 1);
  CountMany(events, 0, 400);
  CountMany(events, 1, 100);
  EXPECT_TRUE(events.Adjust(1).empty()) << "all of the quarter";
  EXPECT_EQ(events.at(1).attr.sample_period, 100'000u);
}

TEST(AccessEventsTest, PeriodsHaveBoundsAndSteps) {
  AccessEvents events;
  events.Add(Every(32'000), 16);
  CountMany(events, 1, 1);
  CountMany(events, 0, 400);
  EXPECT_EQ(events.Adjust(1).at(0).period, 20'000u) << "a burst must not fill the rings";
  CountMany(events, 0, 400);
  EXPECT_TRUE(events.Adjust(1).empty());
  CountMany(events, 0, 1000);
  CountMany(events, 1, 777);
  EXPECT_EQ(events.Adjust(1).at(0).period % 16, 0u);
  AccessEvents slow;
  slow.Add(Every(AccessEvents::kMostPeriod), 1);
  CountMany(slow, 1, 1000);
  EXPECT_TRUE(slow.Adjust(1).empty());
  AccessEvents none;
  CountMany(none, 0, 1000);
  EXPECT_TRUE(none.Adjust(1).empty());
}

}  // namespace
}  // namespace perfd::agent
