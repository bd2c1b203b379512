#include <gtest/gtest.h>

#include "daemon/aggregate/aggregate_codec.h"
#include "tests/unit/daemon/aggregate/random_windows.h"

namespace perfd::daemon {
namespace {

TEST(AggregateCodec, RoundTrips) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    ProfileAggregate aggregate;
    for (const Window& window : RandomWindows(seed, 12)) aggregate.Add(window);
    const std::string bytes = SerializeAggregate(aggregate);
    const auto back = ParseAggregate(bytes);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(*back == aggregate);
    EXPECT_EQ(SerializeAggregate(*back), bytes);
  }
}

TEST(AggregateCodec, GoesOnWhereItStopped) {
  const std::vector<Window> windows = RandomWindows(5, 20);
  ProfileAggregate whole;
  ProfileAggregate half;
  for (size_t i = 0; i < windows.size(); ++i) {
    whole.Add(windows[i]);
    if (i < 10) half.Add(windows[i]);
  }
  ProfileAggregate restarted = ParseAggregate(SerializeAggregate(half)).value();
  for (size_t i = 10; i < windows.size(); ++i) restarted.Add(windows[i]);
  EXPECT_TRUE(restarted == whole);
}

TEST(AggregateCodec, KeepsWhatWasLost) {
  AggregateLimits limits;
  limits.stacks = 1;
  limits.cells = 2;
  ProfileAggregate aggregate(limits);
  for (const Window& window : RandomWindows(9, 10)) aggregate.Add(window);
  ASSERT_GT(aggregate.lost().stack_samples, 0u);
  const auto back = ParseAggregate(SerializeAggregate(aggregate), limits);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->totals(), aggregate.totals());
}

TEST(AggregateCodec, RefusesDamage) {
  ProfileAggregate aggregate;
  for (const Window& window : RandomWindows(2, 5)) aggregate.Add(window);
  const std::string bytes = SerializeAggregate(aggregate);
  EXPECT_EQ(ParseAggregate("").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseAggregate("nonsense").status().code(), absl::StatusCode::kDataLoss);
  for (size_t size = 0; size < bytes.size(); size += 7) {  // never a crash; a prefix may parse
    const auto cut = ParseAggregate(bytes.substr(0, size));
    EXPECT_FALSE(cut.ok() && *cut == aggregate) << size;
  }
}

TEST(AggregateState, IndicesAreChecked) {
  AggregateState state;
  state.cells.resize(1);
  EXPECT_EQ(ProfileAggregate::FromState(state).status().code(), absl::StatusCode::kDataLoss);
  state.cells.clear();
  state.paths.stacks = {{0, {0}, 1}};
  EXPECT_EQ(ProfileAggregate::FromState(state).status().code(), absl::StatusCode::kDataLoss);
  state.paths.frame_names = {"main"};
  EXPECT_TRUE(ProfileAggregate::FromState(state).ok());
  state.locations.resize(1);
  state.paths.calls = {{0, 1, 1}};
  EXPECT_EQ(ProfileAggregate::FromState(state).status().code(), absl::StatusCode::kDataLoss);
  state.paths.calls = {{1, std::nullopt, 1}};
  EXPECT_EQ(ProfileAggregate::FromState(state).status().code(), absl::StatusCode::kDataLoss);
  state.paths.calls = {{0, 0, 1}};
  EXPECT_TRUE(ProfileAggregate::FromState(state).ok());
}

// Before version 3 nobody divided elapsed time. The number of the version is the first field.
TEST(AggregateCodec, OlderAggregatesHaveNoElapsedTime) {
  Window window = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 60, window);
  window.rank_times = {{0, 10, 1000, 7}};
  window.rows[0].wall_ns = 500;
  ProfileAggregate aggregate;
  aggregate.Add(window);
  std::string bytes = SerializeAggregate(aggregate);
  EXPECT_TRUE(ParseAggregate(bytes)->totals().wall.Known());
  bytes[1] = 2;
  const auto old = ParseAggregate(bytes);
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_FALSE(old->totals().wall.Known());
  EXPECT_EQ(old->totals().wall.elapsed_ns, 0u);
}

}  // namespace
}  // namespace perfd::daemon
