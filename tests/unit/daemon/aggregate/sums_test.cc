// Totals against sums made by hand or straight from the windows.
#include <gtest/gtest.h>

#include "daemon/aggregate/profile_aggregate.h"
#include "tests/unit/daemon/aggregate/random_windows.h"

namespace perfd::daemon {
namespace {

TEST(AggregateSums, TotalsEqualTheSumsOfTheWindows) {
  const std::vector<Window> windows = RandomWindows(11, 60);
  ProfileAggregate aggregate;
  uint64_t samples = 0;
  uint64_t weight = 0;
  uint64_t stack_samples = 0;
  Accounting accounting;
  OverheadFigures overhead;
  for (const Window& window : windows) {
    aggregate.Add(window);
    for (const WindowRow& row : window.rows) {
      samples += row.samples;
      weight += row.weight;
    }
    for (const WindowStack& stack : window.paths.stacks) stack_samples += stack.samples;
    accounting += window.accounting;
    overhead += window.overhead;
  }
  EXPECT_EQ(aggregate.totals().samples, samples);
  EXPECT_EQ(aggregate.totals().accounting, accounting);
  EXPECT_EQ(aggregate.totals().overhead, overhead);
  Counts locations;
  for (const LocationTotals& location : aggregate.locations()) locations += location.counts;
  Counts threads;
  for (size_t i = 0; i < aggregate.thread_count(); ++i) threads += aggregate.thread(i).counts;
  Counts cells;
  aggregate.ForEachCell([&](uint32_t, uint32_t, const Counts& counts) { cells += counts; });
  EXPECT_EQ(locations.samples, samples);
  EXPECT_EQ(locations.weight, weight);
  EXPECT_EQ(locations.cpu_ns, aggregate.totals().cpu_ns);
  EXPECT_EQ(threads, locations);
  EXPECT_EQ(cells, locations);
  absl::uint128 squares = 0;
  for (const LocationTotals& location : aggregate.locations()) squares += location.ww;
  EXPECT_EQ(squares, aggregate.totals().ww);
  uint64_t kept_stacks = 0;
  for (const ReportStack& stack : aggregate.paths().stacks()) kept_stacks += stack.samples;
  EXPECT_EQ(kept_stacks, stack_samples);
}

constexpr uint64_t kEach = 10'000'000;  // ns of a sample of AddRow

// Two processes in one window: 30 of 100 and 0 of 50 samples in the loop; a second window of the
// first process: 10 of 20. Threads of a process are one cluster. Samples are of 10 ms.
TEST(AggregateSums, ClustersAreRankTimesWindow) {
  CodeLocation elsewhere;
  Window first = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 20, first);
  AddRow({0, 10, 11}, LoopAt(0x1000), 10, first);
  AddRow({0, 10, 11}, elsewhere, 70, first);
  AddRow({1, 20, 20}, elsewhere, 50, first);
  Window second = EmptyWindow("node0", 2);
  AddRow({0, 10, 10}, LoopAt(0x1000), 10, second);
  AddRow({0, 10, 10}, elsewhere, 10, second);
  ProfileAggregate aggregate;
  aggregate.Add(first);
  aggregate.Add(second);
  ASSERT_EQ(aggregate.locations().size(), 2u);
  ClusterSums expected;
  expected.Add(100 * kEach, 30 * kEach, kEach);
  expected.Add(50 * kEach, 0, kEach);
  expected.Add(20 * kEach, 10 * kEach, kEach);
  EXPECT_EQ(aggregate.SumsOf(aggregate.locations()[0]), expected);
}

// The second process is sampled at a tenth of the rate: ten times the time for each sample.
TEST(AggregateSums, ClustersAreOfTimeNotOfSamples) {
  CodeLocation elsewhere;
  Window fast = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 30, fast);
  AddRow({0, 10, 10}, elsewhere, 70, fast);
  Window slow = EmptyWindow("node1", 1);
  slow.setup.frequency_hz = 10;
  AddRow({1, 20, 20}, LoopAt(0x1000), 6, slow);
  AddRow({1, 20, 20}, elsewhere, 4, slow);
  for (WindowRow& row : slow.rows) row.weight *= 10;
  ProfileAggregate aggregate;
  aggregate.Add(fast);
  aggregate.Add(slow);
  ClusterSums expected;
  expected.Add(100 * kEach, 30 * kEach, kEach);
  expected.Add(100 * kEach, 60 * kEach, 10 * kEach);
  EXPECT_EQ(aggregate.SumsOf(aggregate.locations()[0]), expected);
  EXPECT_EQ(aggregate.locations()[0].counts, (Counts{36, 90 * kEach, 90 * kEach}));
}

// Beyond what a window can have (row_time.h), samples are counted and no time.
TEST(AggregateSums, ImpossibleTimesDoNotOverflow) {
  ProfileAggregate aggregate;
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    Window window = EmptyWindow("node0", sequence);
    AddRow({0, 10, 10}, LoopAt(0x1000), 1, window);
    AddRow({0, 10, 10}, LoopAt(0x2000), 1, window);
    for (WindowRow& row : window.rows) row.weight = UINT64_MAX;
    aggregate.Add(window);
  }
  EXPECT_EQ(aggregate.totals().cpu_ns, 3 * (uint64_t{1} << 50));
  EXPECT_EQ(aggregate.locations()[0].counts.cpu_ns, 3 * (uint64_t{1} << 50));
  EXPECT_EQ(aggregate.locations()[1].counts.cpu_ns, 0u);
  EXPECT_EQ(aggregate.locations()[1].counts.samples, 3u);
}

// In any order, and from an aggregate that does not know.
TEST(AggregateSums, APlaceKnowsItsFirstAndItsLastWindow) {
  Window early = EmptyWindow("node0", 1);
  early.start_unix_ns = 5'000'000'000;
  AddRow({0, 10, 10}, LoopAt(0x1000), 1, early);
  Window late = EmptyWindow("node1", 1);
  late.start_unix_ns = 40'000'000'000;
  AddRow({1, 20, 20}, LoopAt(0x1000), 1, late);
  Window without = EmptyWindow("node1", 2);
  without.start_unix_ns = 90'000'000'000;
  AddRow({1, 20, 20}, LoopAt(0x2000), 1, without);
  ProfileAggregate aggregate, other;
  for (const Window& window : {late, early, without}) aggregate.Add(window);
  EXPECT_EQ(aggregate.locations()[0].first_unix_ns, 5'000'000'000);
  EXPECT_EQ(aggregate.locations()[0].last_unix_ns, 41'000'000'000);
  AggregateState old = aggregate.State();
  for (LocationTotals& location : old.locations) location.first_unix_ns = location.last_unix_ns = 0;
  other.Merge(*ProfileAggregate::FromState(old));
  other.Merge(aggregate);
  EXPECT_EQ(other.State().locations[0].first_unix_ns, 5'000'000'000);
  EXPECT_EQ(other.State().locations[0].last_unix_ns, 41'000'000'000);
}

TEST(AggregateSums, AWindowThatEndsAfterTheEndOfTimeDoesNotOverflow) {
  Window window = EmptyWindow("node0", 1);
  window.start_unix_ns = window.duration_ns = INT64_MAX;
  AddRow({0, 10, 10}, LoopAt(0x1000), 1, window);
  ProfileAggregate aggregate;
  aggregate.Add(window);
  EXPECT_EQ(aggregate.locations()[0].last_unix_ns, INT64_MAX);
}

TEST(AggregateSums, ThreadsThatShareARankNumberButNotAProcessAreTwoClusters) {
  Window window = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 1, window);
  AddRow({0, 11, 11}, LoopAt(0x1000), 1, window);
  ProfileAggregate aggregate;
  aggregate.Add(window);
  EXPECT_EQ(aggregate.totals().clusters, 2u);
}

TEST(AggregateSums, CpuTimeFollowsTheEvent) {
  Window clock = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 3, clock);  // 3 x 10 ms of weight
  Window cycles = EmptyWindow("node0", 2);
  cycles.setup.event = "cycles:u";
  cycles.setup.frequency_hz = 200;
  AddRow({0, 10, 10}, LoopAt(0x1000), 4, cycles);
  Window no_weight = EmptyWindow("node0", 3);
  AddRow({0, 10, 10}, LoopAt(0x1000), 2, no_weight);
  no_weight.rows[0].weight = 0;
  ProfileAggregate aggregate;
  aggregate.Add(clock);
  EXPECT_EQ(aggregate.locations()[0].counts.cpu_ns, 30'000'000u);
  aggregate.Add(cycles);
  EXPECT_EQ(aggregate.locations()[0].counts.cpu_ns, 50'000'000u);
  aggregate.Add(no_weight);
  EXPECT_EQ(aggregate.locations()[0].counts.cpu_ns, 70'000'000u);
}

TEST(AggregateSums, MeanFrequencyIsWeightedByTime) {
  ProfileAggregate aggregate;
  Window fast = EmptyWindow("node0", 1);
  fast.setup.frequency_hz = 199;
  fast.duration_ns = 3'000'000'000;
  Window slow = EmptyWindow("node0", 2);
  slow.setup.frequency_hz = 99;
  slow.start_unix_ns = 5;
  aggregate.Add(slow);
  aggregate.Add(fast);
  ASSERT_EQ(aggregate.nodes().size(), 1u);
  EXPECT_DOUBLE_EQ(aggregate.nodes()[0].MeanFrequencyHz(), (3 * 199 + 99) / 4.0);
  EXPECT_DOUBLE_EQ(aggregate.nodes()[0].setup.frequency_hz, 99) << "setup of the last window";
  EXPECT_EQ(aggregate.nodes()[0].windows, 2u);
  EXPECT_EQ(aggregate.nodes()[0].covered_ns, 4'000'000'000u);
}

TEST(AggregateSums, ARankBelongsToTheNodeThatSentIt) {
  Window window = EmptyWindow("node0", 1);
  window.ranks.resize(1);
  window.ranks[0].node = "somewhere else";
  ProfileAggregate aggregate;
  aggregate.Add(window);
  EXPECT_EQ(aggregate.ranks()[0].info.node, "node0");
}

// Two ranks of one node; a child of the first counts with it.
Window DividedWindow(uint64_t sequence) {
  Window window = EmptyWindow("node0", sequence);
  AddRow({0, 10, 10}, LoopAt(0x1000), 60, window);
  AddRow({0, 12, 12}, LoopAt(0x1000), 10, window);
  AddRow({1, 11, 11}, LoopAt(0x2000), 20, window);
  window.rows[0].wall_ns = 500;
  window.rows[1].wall_ns = 100;
  window.rows[2].wall_ns = 200;
  window.rank_times = {{0, 10, 1000, 7}, {1, 11, 900, 0}};
  return window;
}

TEST(Sums, ElapsedTimeOfRanks) {
  ProfileAggregate aggregate;
  aggregate.Add(DividedWindow(1));
  aggregate.Add(DividedWindow(2));
  const WallSums& wall = aggregate.totals().wall;
  EXPECT_TRUE(wall.Known());
  EXPECT_EQ(wall.clusters, 4u);
  EXPECT_EQ(wall.elapsed_ns, 3800u);
  EXPECT_EQ(wall.cpu_wait_ns, 14u);
  EXPECT_EQ(wall.xx, 2u * (1000 * 1000 + 900 * 900));
  const LocationTotals& loop = aggregate.locations()[0];
  EXPECT_EQ(loop.counts.wall_ns, 1200u);
  EXPECT_EQ(loop.wall.yy, 2u * 600 * 600) << "parent and child are one cluster";
  EXPECT_EQ(loop.wall.xy, 2u * 600 * 1000);
  const ClusterSums sums = aggregate.SumsOf(loop, ShareBasis::kWall);
  EXPECT_EQ(sums.x, 3800u);
  EXPECT_EQ(sums.y, 1200u);
}

TEST(Sums, OneWindowWithoutElapsedTimeMakesItUnknown) {
  ProfileAggregate aggregate;
  aggregate.Add(DividedWindow(1));
  Window old = DividedWindow(2);
  old.rank_times.clear();
  for (WindowRow& row : old.rows) row.wall_ns = 0;
  aggregate.Add(old);
  EXPECT_FALSE(aggregate.totals().wall.Known());
  ProfileAggregate idle;
  idle.Add(DividedWindow(1));
  idle.Add(EmptyWindow("node0", 3));
  EXPECT_TRUE(idle.totals().wall.Known()) << "nothing was seen there that could be divided";
}

}  // namespace
}  // namespace perfd::daemon
