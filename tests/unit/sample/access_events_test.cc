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
  const auto changes = events.Adjust();
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].event, 0u);
  EXPECT_EQ(changes[0].period, 400'000u);
  EXPECT_EQ(changes[1].period, 25'000u);
  EXPECT_EQ(events.events()[0].attr.sample_period, 400'000u) << "for what is opened from now on";
  EXPECT_TRUE(events.Adjust().empty()) << "counted anew";
}

TEST(AccessEventsTest, WhatIsNearlyRightIsLetBe) {
  AccessEvents events;
  events.Add(Every(100'000), 1);
  for (const int samples : {13, 25, 50}) {
    CountMany(events, 0, 100);
    CountMany(events, 1, samples);
    EXPECT_TRUE(events.Adjust().empty()) << samples;
  }
}

TEST(AccessEventsTest, LooksWhenThereIsEnoughToSeeOrTooMuch) {
  AccessEvents events;
  events.Add(Every(100'000), 1);
  CountMany(events, 0, 99);
  EXPECT_TRUE(events.Adjust().empty());
  CountMany(events, 1, 200);
  EXPECT_TRUE(events.Adjust().empty());
  CountMany(events, 1, 1);
  EXPECT_EQ(events.Adjust().size(), 1u) << "a flood is not waited for";
  const uint64_t before = events.events()[0].attr.sample_period;
  CountMany(events, 1, 201);
  EXPECT_EQ(events.Adjust().at(0).period, 64 * before) << "at most, also without any of time";
}

TEST(AccessEventsTest, PeriodsHaveBoundsAndSteps) {
  AccessEvents events;
  events.Add(Every(1'200), 16);
  CountMany(events, 0, 100);
  EXPECT_EQ(events.Adjust().at(0).period, 1'008u) << "a multiple of 16 near the least one";
  CountMany(events, 0, 100);
  EXPECT_TRUE(events.Adjust().empty()) << "it is there already";
  AccessEvents slow;
  slow.Add(Every(AccessEvents::kMostPeriod), 1);
  CountMany(slow, 1, 1000);
  EXPECT_TRUE(slow.Adjust().empty());
  AccessEvents none;
  CountMany(none, 0, 1000);
  EXPECT_TRUE(none.Adjust().empty());
}

}  // namespace
}  // namespace perfd::agent
