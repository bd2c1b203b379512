// What an older perfd has stored.
#include <gtest/gtest.h>

#include "daemon/aggregate/aggregate_codec.h"
#include "daemon/aggregate/aggregate_version1.h"
#include "tests/unit/daemon/aggregate/random_windows.h"

namespace perfd::daemon {
namespace {

constexpr uint64_t kMs = 1'000'000;

// As version 1 held them: cluster sums in samples, and nothing of what came later.
AggregateState Version1(const std::vector<Window>& windows) {
  ProfileAggregate in_samples;  // windows without a frequency count samples
  for (Window window : windows) {
    window.setup = {"cycles", 0, true, "per-thread", Provenance::kSampled};
    in_samples.Add(window);
  }
  ProfileAggregate aggregate;
  for (const Window& window : windows) aggregate.Add(window);
  AggregateState state = aggregate.State();
  const AggregateState samples = in_samples.State();
  for (size_t i = 0; i < state.locations.size(); ++i) {
    state.locations[i].yy = samples.locations[i].yy;
    state.locations[i].xy = samples.locations[i].xy;
    state.locations[i].ww = 0;
  }
  state.totals.xx = samples.totals.xx;
  state.totals.cpu_ns = 0;
  state.totals.ww = 0;
  return state;
}

CodeLocation Elsewhere() {
  CodeLocation location;
  location.category = Category::kOutsideLoop;
  location.function = "main";
  return location;
}

// `each_ns`: what a sample weighs.
Window OneRank(const std::string& node, int32_t pid, uint64_t sequence, uint64_t in_loop,
               uint64_t elsewhere, uint64_t each_ns) {
  Window window = EmptyWindow(node, sequence);
  AddRow({pid, pid, pid}, LoopAt(0x1000), in_loop, window);
  AddRow({pid, pid, pid}, Elsewhere(), elsewhere, window);
  for (WindowRow& row : window.rows) row.weight = row.samples * each_ns;
  window.setup.frequency_hz = 1e9 / static_cast<double>(each_ns);
  return window;
}

void ExpectNear(const Interval& found, const Interval& wanted) {
  EXPECT_NEAR(found.low, wanted.low, 1e-9);
  EXPECT_NEAR(found.high, wanted.high, 1e-9);
}

TEST(AggregateVersion1, IsExactWhereAllSamplesStandForTheSameTime) {
  const std::vector<Window> windows = {OneRank("node0", 10, 1, 30, 70, 5 * kMs),
                                       OneRank("node0", 10, 2, 50, 50, 5 * kMs),
                                       OneRank("node1", 20, 1, 10, 90, 5 * kMs)};
  ProfileAggregate wanted;
  for (const Window& window : windows) wanted.Add(window);
  AggregateState state = Version1(windows);
  ASSERT_TRUE(ConvertVersion1(state).ok());
  const ProfileAggregate found = ProfileAggregate::FromState(state).value();
  EXPECT_EQ(found.totals().cpu_ns, wanted.totals().cpu_ns);
  EXPECT_EQ(found.totals().samples, wanted.totals().samples);
  ASSERT_EQ(found.locations().size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(found.locations()[i].counts, wanted.State().locations[i].counts);
    ExpectNear(ShareInterval(found.SumsOf(found.locations()[i])),
               ShareInterval(wanted.SumsOf(wanted.State().locations[i])));
  }
}

// node1 rested nine tenths of the time; its samples told the period of the opened event.
TEST(AggregateVersion1, ANodeThatRestedGetsTheTimeThatItsSamplesStoodFor) {
  Window rested = OneRank("node1", 20, 1, 20, 20, 50 * kMs);
  for (WindowRow& row : rested.rows) row.weight = row.samples * 5 * kMs;
  AggregateState state = Version1({OneRank("node0", 10, 1, 100, 300, 5 * kMs), rested});
  ASSERT_TRUE(ConvertVersion1(state).ok());
  const ProfileAggregate found = ProfileAggregate::FromState(state).value();
  EXPECT_EQ(found.totals().cpu_ns, 4000 * kMs);  // 2 s each
  const AggregateState after = found.State();
  ASSERT_EQ(after.threads.size(), 2u);
  EXPECT_EQ(after.threads[0].counts.cpu_ns, 2000 * kMs);
  EXPECT_EQ(after.threads[1].counts.cpu_ns, 2000 * kMs);
  for (const LocationTotals& location : after.locations) {
    const bool loop = location.location.loop.has_value();
    EXPECT_EQ(location.counts.cpu_ns, (loop ? 500u + 1000 : 1500u + 1000) * kMs);
    const Interval interval = ShareInterval(found.SumsOf(location));
    EXPECT_LT(interval.low, loop ? 0.375 : 0.625);
    EXPECT_GT(interval.high, loop ? 0.375 : 0.625);
  }
}

// The time of hardware events was always samples / frequency of the window.
TEST(AggregateVersion1, OnlyClocksAreCorrected) {
  Window cycles = OneRank("node0", 10, 1, 20, 20, 50 * kMs);
  cycles.setup.event = "cycles:u";
  Window faster = cycles;
  faster.sequence = 2;
  faster.setup.frequency_hz = 200;
  AggregateState state = Version1({cycles, faster});
  ASSERT_TRUE(ConvertVersion1(state).ok());
  EXPECT_EQ(state.totals.cpu_ns, (40 * 50 + 40 * 5) * kMs);
}

TEST(AggregateVersion1, WithoutAnyTimeSamplesStandForIt) {
  AggregateState state = Version1({OneRank("node0", 10, 1, 30, 70, 5 * kMs)});
  for (ThreadTotals& thread : state.threads) thread.counts.cpu_ns = 0;
  for (LocationTotals& location : state.locations) location.counts.cpu_ns = 0;
  for (Cell& cell : state.cells) cell.counts.cpu_ns = 0;
  for (NodeTotals& node : state.nodes) node.setup.frequency_hz = 0;
  ASSERT_TRUE(ConvertVersion1(state).ok());
  EXPECT_EQ(state.totals.cpu_ns, 100u);
  EXPECT_EQ(state.locations[0].counts.cpu_ns + state.locations[1].counts.cpu_ns, 100u);
}

TEST(AggregateVersion1, ABadIndexIsRefused) {
  AggregateState state;
  state.cells.resize(1);
  EXPECT_EQ(ConvertVersion1(state).code(), absl::StatusCode::kDataLoss);
}

TEST(AggregateVersion1, ImpossibleSumsStayInRange) {
  AggregateState state = Version1(
      {OneRank("node0", 10, 1, 30, 70, 5 * kMs), OneRank("node0", 10, 2, 30, 70, 5 * kMs)});
  state.totals.xx = ~absl::uint128(0);
  state.locations[0].yy = state.locations[0].xy = ~absl::uint128(0);
  state.nodes[0].frequency_span = 1;  // one mHz in all its life
  ASSERT_TRUE(ConvertVersion1(state).ok());
  const ProfileAggregate found = ProfileAggregate::FromState(state).value();
  const Interval interval = ShareInterval(found.SumsOf(found.locations()[0]));
  EXPECT_GE(interval.low, 0);
  EXPECT_LE(interval.high, 1);
}

// In samples of 1 ns both versions have the same sums. The number of the version is the first field.
TEST(AggregateVersion1, IsReadByTheCodecAndNewerOnesAreRefused) {
  Window window = OneRank("node0", 10, 1, 30, 70, 5 * kMs);
  window.setup = {"cycles", 0, true, "per-thread", Provenance::kSampled};
  ProfileAggregate aggregate;
  aggregate.Add(window);
  std::string bytes = SerializeAggregate(aggregate);
  ASSERT_EQ(bytes.substr(0, 2), "\x08\x03");
  bytes[1] = 1;
  const auto old = ParseAggregate(bytes);
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_TRUE(*old == aggregate);
  for (const char version : {'\0', '\4'}) {
    bytes[1] = version;
    EXPECT_EQ(ParseAggregate(bytes).status().code(), absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace perfd::daemon
