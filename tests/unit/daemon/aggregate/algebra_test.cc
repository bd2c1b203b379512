// The oracle is algebra: whatever the order and grouping of Add and Merge, the value is the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "daemon/aggregate/aggregate_codec.h"
#include "daemon/aggregate/profile_aggregate.h"
#include "tests/unit/daemon/aggregate/random_windows.h"

namespace perfd::daemon {
namespace {

ProfileAggregate Sequential(const std::vector<Window>& windows) {
  ProfileAggregate aggregate;
  for (const Window& window : windows) aggregate.Add(window);
  return aggregate;
}

// Spreads the windows over random parts, then merges random pairs until one is left.
ProfileAggregate RandomTree(std::vector<Window> windows, std::mt19937_64& random) {
  std::shuffle(windows.begin(), windows.end(), random);
  std::vector<ProfileAggregate> parts(1 + random() % 6);
  for (const Window& window : windows) parts[random() % parts.size()].Add(window);
  while (parts.size() > 1) {
    std::shuffle(parts.begin(), parts.end(), random);
    parts.front().Merge(parts.back());
    parts.pop_back();
  }
  return std::move(parts.front());
}

TEST(AggregateAlgebra, AnyOrderAndGroupingGivesTheSameValue) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const std::vector<Window> windows = RandomWindows(seed, 25);
    const ProfileAggregate whole = Sequential(windows);
    EXPECT_FALSE(whole.lost().Any());
    std::mt19937_64 random(seed);
    for (int round = 0; round < 3; ++round) {
      const ProfileAggregate tree = RandomTree(windows, random);
      ASSERT_EQ(tree.State(), whole.State()) << "seed " << seed;
      ASSERT_TRUE(tree == whole);
      ASSERT_EQ(SerializeAggregate(tree), SerializeAggregate(whole));
    }
  }
}

TEST(AggregateAlgebra, OneWindowMoreIsAnotherValue) {
  std::vector<Window> windows = RandomWindows(7, 10);
  const ProfileAggregate whole = Sequential(windows);
  windows.push_back(EmptyWindow("node0", 99));
  EXPECT_FALSE(Sequential(windows) == whole);
}

TEST(AggregateAlgebra, AnEmptyAggregateIsNeutral) {
  const ProfileAggregate whole = Sequential(RandomWindows(3, 10));
  ProfileAggregate left;
  left.Merge(whole);
  EXPECT_TRUE(left == whole);
  ProfileAggregate right = whole;
  right.Merge(ProfileAggregate());
  EXPECT_TRUE(right == whole);
}

TEST(AggregateAlgebra, MergingWithItselfDoubles) {
  ProfileAggregate aggregate = Sequential(RandomWindows(4, 10));
  const JobTotals before = aggregate.totals();
  aggregate.Merge(aggregate);
  EXPECT_EQ(aggregate.totals().samples, 2 * before.samples);
  EXPECT_EQ(aggregate.totals().clusters, 2 * before.clusters);
  EXPECT_EQ(aggregate.totals().accounting.seen, 2 * before.accounting.seen);
}

TEST(AggregateAlgebra, TheRicherDescriptionStays) {
  for (bool rich_first : {true, false}) {
    ProfileAggregate aggregate;
    for (bool rich : {rich_first, !rich_first}) {
      Window window = EmptyWindow("node0", rich ? 1 : 2);
      AddRow({0, 1, 1}, LoopAt(0x1000, rich), 5, window);
      aggregate.Add(window);
    }
    ASSERT_EQ(aggregate.locations().size(), 1u);
    EXPECT_EQ(aggregate.locations()[0].location, LoopAt(0x1000, true));
    EXPECT_EQ(aggregate.locations()[0].counts.samples, 10u);
  }
}

}  // namespace
}  // namespace perfd::daemon
