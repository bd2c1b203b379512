#include "daemon/aggregate/recent_heat.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"

namespace perfd::daemon {
namespace {

constexpr int64_t kNow = 1'700'000'000 * kNsPerSecond;
constexpr int64_t kSpan = 10 * kNsPerSecond;

CodeLocation Loop(uint64_t header) {
  CodeLocation location;
  location.category = Category::kLoop;
  location.module_id = "m";
  location.loop.emplace().header = header;
  return location;
}

// Ends at `end_ns`; one row for each thread, `samples` in the loop at `header` each.
Window At(int64_t end_ns, uint64_t header, uint64_t samples, uint32_t threads = 1) {
  Window window;
  window.duration_ns = 5 * kNsPerSecond;
  window.start_unix_ns = end_ns - window.duration_ns;
  window.locations = {Loop(header)};
  for (uint32_t i = 0; i < threads; ++i) window.rows.push_back({i, 0, samples, 0});
  return window;
}

std::string Id(uint64_t header) {
  return LocationId(Loop(header));
}

TEST(RecentHeat, SumsWindowsNodesAndThreadsOfTheSpan) {
  RecentHeat heat;
  heat.Add(At(kNow, 1, 5, 2));
  heat.Add(At(kNow - 3 * kNsPerSecond, 1, 7));
  heat.Add(At(kNow, 2, 1));
  const auto sums = heat.Recent(kNow, kSpan);
  EXPECT_EQ(sums.at(Id(1)).samples, 17u);
  EXPECT_EQ(sums.at(Id(2)).samples, 1u);
  EXPECT_EQ(sums.size(), 2u);
}

TEST(RecentHeat, KnowsTheTimeThatSamplesStandFor) {
  RecentHeat heat;
  for (const double hz : {200.0, 10.0}) {
    Window window = At(kNow, 1, 5, 2);
    window.setup.event = "cycles";
    window.setup.frequency_hz = hz;
    heat.Add(window);
  }
  const auto sums = heat.Recent(kNow, kSpan);
  EXPECT_EQ(sums.at(Id(1)).samples, 20u);
  EXPECT_EQ(sums.at(Id(1)).cpu_ns, 10 * 5'000'000u + 10 * 100'000'000u);
}

TEST(RecentHeat, TimeOfFunctionsIsThatOfTheLoopsThatCalledThem) {
  Window window = At(kNow, 1, 10);
  window.locations.push_back({});  // a function: 100 samples, of whose 8 paths 6 come from the loop
  window.rows.push_back({0, 1, 100, 0});
  window.paths.calls = {{1, 0, 6}, {1, std::nullopt, 2}};
  RecentHeat heat;
  heat.Add(window);
  EXPECT_EQ(heat.Recent(kNow, kSpan).at(Id(1)).samples, 10u + 75);
}

TEST(RecentHeat, WhatIsOlderIsForgotten) {
  RecentHeat heat;
  heat.Add(At(kNow - kSpan, 1, 5));
  heat.Add(At(kNow - kSpan + kNsPerSecond, 2, 5));
  EXPECT_EQ(heat.Recent(kNow, kSpan).size(), 1u);
  EXPECT_EQ(heat.Recent(kNow, kSpan).at(Id(2)).samples, 5u);
  EXPECT_TRUE(heat.Recent(kNow + kNsPerSecond, kSpan).empty());
}

TEST(RecentHeat, OrderOfArrivalDoesNotMatter) {
  RecentHeat heat;
  heat.Add(At(kNow, 1, 5));
  heat.Add(At(kNow - 60 * kNsPerSecond, 1, 100));  // sent again after an hour without a link
  EXPECT_EQ(heat.Recent(kNow, kSpan).at(Id(1)).samples, 5u);
}

TEST(RecentHeat, AClockFarAheadDoesNotHideTheOthers) {
  RecentHeat heat;
  for (int i = 0; i < 1000; ++i) {
    heat.Add(At(kNow + (1000 + i) * kNsPerSecond, 1, 5));
    heat.Add(At(kNow, 2, 1));
    const auto sums = heat.Recent(kNow, kSpan);
    ASSERT_FALSE(sums.contains(Id(1)));
    ASSERT_EQ(sums.at(Id(2)).samples, static_cast<uint64_t>(i) + 1);
  }
}

TEST(RecentHeat, OnlyLoopsCount) {
  RecentHeat heat;
  Window window = At(kNow, 1, 5);
  window.locations[0].category = Category::kLibrary;
  heat.Add(window);
  window = At(kNow, 1, 5);
  window.locations[0].loop.reset();
  heat.Add(window);
  window = At(kNow, 1, 5);
  window.rows[0].location = 1;  // of no location
  heat.Add(window);
  EXPECT_TRUE(heat.Recent(kNow, kSpan).empty());
}

TEST(RecentHeat, IsBoundedAndCountsWhatItLoses) {
  RecentHeat heat;
  Window window = At(kNow, 0, 0);
  window.locations.clear();
  window.rows.clear();
  for (uint32_t i = 0; i < RecentHeat::kMostKeys + 2; ++i) {
    window.locations.push_back(Loop(i));
    window.rows.push_back({0, i, 3, 0});
  }
  heat.Add(window);
  EXPECT_EQ(heat.lost(), 6u);
  heat.Add(At(kNow, 0, 1));  // known ones still count
  EXPECT_EQ(heat.lost(), 6u);
  EXPECT_EQ(heat.Recent(kNow, kSpan).size(), RecentHeat::kMostKeys);

  RecentHeat many;
  for (int64_t i = 0; i <= static_cast<int64_t>(RecentHeat::kMostSlots); ++i)
    many.Add(At(kNow + i * kNsPerSecond, 1, 2));
  EXPECT_EQ(many.lost(), 2u);  // the oldest second
}

TEST(RecentHeat, ImpossibleTimesAreHarmless) {
  RecentHeat heat;
  Window window = At(kNow, 1, 5);
  window.start_unix_ns = INT64_MAX;
  window.duration_ns = INT64_MAX;
  heat.Add(window);
  window.start_unix_ns = INT64_MIN;
  window.duration_ns = INT64_MIN;
  heat.Add(window);
  EXPECT_TRUE(heat.Recent(kNow, kSpan).empty());
}

}  // namespace
}  // namespace perfd::daemon
