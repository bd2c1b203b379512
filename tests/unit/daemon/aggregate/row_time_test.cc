#include "daemon/aggregate/row_time.h"

#include <gtest/gtest.h>

#include <limits>

namespace perfd::daemon {
namespace {

SamplingSetup SetupOf(const char* event, double frequency_hz) {
  SamplingSetup setup;
  setup.event = event;
  setup.frequency_hz = frequency_hz;
  return setup;
}

WindowRow Row(uint64_t samples, uint64_t weight) {
  return {0, 0, samples, weight};
}

TEST(RowTime, ClocksWeighTimeAndOtherEventsHaveAFrequency) {
  EXPECT_EQ(RowTime(SetupOf("cpu-clock", 200)).TimeOf(Row(3, 60'000'000)), 60'000'000u);
  EXPECT_EQ(RowTime(SetupOf("task-clock:u", 200)).TimeOf(Row(3, 60'000'000)), 60'000'000u);
  EXPECT_EQ(RowTime(SetupOf("cpu-clock", 200)).TimeOf(Row(3, 0)), 15'000'000u);
  EXPECT_EQ(RowTime(SetupOf("cycles:u (precise 2)", 200)).TimeOf(Row(3, 60'000'000)), 15'000'000u);
}

// The agent tells the period that samples have in the mean: a node that rests has few samples, each of more time.
TEST(RowTime, ASampleOfAClockStandsForWhatItWeighs) {
  RowTime time(SetupOf("cpu-clock", 10));
  EXPECT_EQ(time.TimeOf(Row(1, 100'000'000)), 100'000'000u);
  EXPECT_EQ(time.TimeOf(Row(20, 100'000'000)),
            100'000'000u);  // of a thread that could not even be slowed
}

TEST(RowTime, WithoutAFrequencyASampleIsAlmostNothing) {
  for (const double hz : {0.0, -1.0, 1e-4, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_EQ(RowTime(SetupOf("cycles", hz)).TimeOf(Row(7, 1000)), 7u) << hz;
  EXPECT_EQ(RowTime(SetupOf("cycles", 1e-3)).TimeOf(Row(7, 1000)), 7'000'000'000'000u);
  EXPECT_EQ(RowTime(SetupOf("cycles", 1e30)).TimeOf(Row(7, 1000)), 7u);
}

TEST(RowTime, NoSamplesNoTime) {
  EXPECT_EQ(RowTime(SetupOf("cpu-clock", 100)).TimeOf(Row(0, 1000)), 0u);
}

TEST(RowTime, AWindowHasNoMoreThanTheMost) {
  RowTime clock(SetupOf("cpu-clock", 100));
  EXPECT_EQ(clock.TimeOf(Row(1, kMostWindowNs - 5)), kMostWindowNs - 5);
  EXPECT_EQ(clock.TimeOf(Row(1, 5)), 5u);
  EXPECT_EQ(clock.TimeOf(Row(1, 1)), 0u);
  RowTime cycles(SetupOf("cycles", 1e-3));  // the product has 76 bits
  EXPECT_EQ(cycles.TimeOf(Row(uint64_t{1} << 36, 1)), kMostWindowNs);
  EXPECT_EQ(cycles.TimeOf(Row(1, 1)), 0u);
}

}  // namespace
}  // namespace perfd::daemon
