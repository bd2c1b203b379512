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
  state.stacks = {{0, {0}, 1}};
  EXPECT_EQ(ProfileAggregate::FromState(state).status().code(), absl::StatusCode::kDataLoss);
  state.frame_names = {"main"};
  EXPECT_TRUE(ProfileAggregate::FromState(state).ok());
}

}  // namespace
}  // namespace perfd::daemon
