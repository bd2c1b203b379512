// At each limit nothing is lost; one past it the loss is counted and the totals stay.
#include <gtest/gtest.h>

#include "daemon/aggregate/profile_aggregate.h"
#include "tests/unit/daemon/aggregate/random_windows.h"

namespace perfd::daemon {
namespace {

Window ManyPlaces(int count) {
  Window window = EmptyWindow("node0", 1);
  for (int i = 0; i < count; ++i)
    AddRow({0, 1, 1}, LoopAt(0x1000 + static_cast<uint64_t>(i) * 16), 1, window);
  return window;
}

TEST(AggregateLimits, PlacesPastTheLimitAreFoldedByCategory) {
  AggregateLimits limits;
  limits.locations = 10;
  ProfileAggregate exact(limits);
  exact.Add(ManyPlaces(10));
  EXPECT_FALSE(exact.lost().Any());

  ProfileAggregate folded(limits);
  folded.Add(ManyPlaces(13));
  folded.Add(ManyPlaces(13));
  EXPECT_EQ(folded.locations().size(), 11u);
  EXPECT_EQ(folded.lost().location_samples, 6u);
  EXPECT_EQ(folded.totals().samples, 26u);
  EXPECT_EQ(folded.locations().back().location.function, "(other)");
  EXPECT_EQ(folded.locations().back().location.category, Category::kLoop);
  EXPECT_EQ(folded.locations().back().counts.samples, 6u);
}

TEST(AggregateLimits, ANameLikeOursDoesNotPassTheLimit) {
  AggregateLimits limits;
  limits.locations = 2;
  ProfileAggregate aggregate(limits);
  Window window = EmptyWindow("node0", 1);
  for (uint64_t i = 0; i < 50; ++i) {
    CodeLocation location = LoopAt(0x1000 + i);
    location.function = "(other)";
    AddRow({0, 1, 1}, location, 1, window);
  }
  aggregate.Add(window);
  EXPECT_LE(aggregate.locations().size(), 3u);
}

TEST(AggregateLimits, ThreadsPastTheLimitAreOnePerProcess) {
  AggregateLimits limits;
  limits.threads = 4;
  ProfileAggregate aggregate(limits);
  Window window = EmptyWindow("node0", 1);
  for (int32_t tid = 1; tid <= 4; ++tid) AddRow({0, 1, tid}, LoopAt(0x1000), 1, window);
  aggregate.Add(window);
  EXPECT_FALSE(aggregate.lost().Any());
  for (int32_t tid = 5; tid <= 9; ++tid) AddRow({0, 1, tid}, LoopAt(0x1000), 1, window);
  aggregate.Add(window);
  EXPECT_EQ(aggregate.thread_count(), 5u);
  EXPECT_EQ(aggregate.lost().thread_samples, 5u);
  EXPECT_EQ(aggregate.thread(4).key, (ThreadKey{"node0", 0, 1, 0}));
  for (int32_t pid = 2; pid < 50; ++pid) AddRow({pid, pid, 7}, LoopAt(0x1000), 1, window);
  aggregate.Add(window);
  EXPECT_EQ(aggregate.thread_count(), 9u) << "twice the limit and one for everything else";
  EXPECT_EQ(aggregate.locations()[0].counts.samples, 4u + 9 + 57);
}

TEST(AggregateLimits, WhatIsFrozenGoesOnCountingAndDoesNotGrow) {
  ProfileAggregate aggregate;
  const size_t empty = aggregate.Bytes();
  aggregate.Add(ManyPlaces(100));
  const size_t before = aggregate.Bytes();
  EXPECT_GT(before, empty + 100 * sizeof(LocationTotals));
  aggregate.Freeze();
  Window window = ManyPlaces(100);
  for (int i = 0; i < 500; ++i) {
    CodeLocation location = LoopAt(0x10000 + static_cast<uint64_t>(i) * 16);
    location.function = std::string(1000, 'f');
    AddRow({0, 1, i}, location, 1, window);
  }
  for (int i = 0; i < 3; ++i) aggregate.Add(window);
  EXPECT_LT(aggregate.Bytes(), before + 8192) << "one line for what is new";
  EXPECT_EQ(aggregate.totals().samples, 100u + 3 * 600);
  EXPECT_EQ(aggregate.locations()[0].counts.samples, 4u);
  EXPECT_EQ(aggregate.lost().location_samples, 3u * 500);
  // Nor does it when it is frozen again, and again.
  for (int round = 0; round < 5; ++round) {
    aggregate.Freeze();
    Window many = EmptyWindow("node0", 1);
    for (int32_t pid = 0; pid < 500; ++pid)
      AddRow({pid, 1000 * (round + 1) + pid, pid}, LoopAt(0x1000), 1, many);
    aggregate.Add(many);
  }
  EXPECT_LT(aggregate.Bytes(), before + 8192);
  // A better description of what is known would be more, too.
  CodeLocation richer = aggregate.locations()[0].location;
  richer.source = {std::string(100'000, 's'), 1, 100};
  Window better = EmptyWindow("node0", 2);
  AddRow({0, 1, 1}, richer, 1, better);
  aggregate.Add(better);
  EXPECT_LT(aggregate.Bytes(), before + 8192);
}

TEST(AggregateLimits, CellsPastTheLimitAreCounted) {
  AggregateLimits limits;
  limits.cells = 3;
  ProfileAggregate aggregate(limits);
  aggregate.Add(ManyPlaces(3));
  EXPECT_FALSE(aggregate.lost().Any());
  aggregate.Add(ManyPlaces(5));
  EXPECT_EQ(aggregate.lost().cell_samples, 2u);
  Counts cells;
  aggregate.ForEachCell([&](uint32_t, uint32_t, const Counts& counts) { cells += counts; });
  EXPECT_EQ(cells.samples + aggregate.lost().cell_samples, aggregate.totals().samples);
}

TEST(AggregateLimits, FoldedKernelTimeKeepsItsCause) {
  Window window = EmptyWindow("node0", 1);
  for (int i = 0; i < 20; ++i) {
    CodeLocation location;
    location.category = Category::kKernel;
    location.function = "[kernel]";
    location.kernel_cause = i % 2 == 0 ? KernelCause::kPageFault : KernelCause::kIo;
    location.kernel_caller = std::string(1, static_cast<char>('a' + i));
    AddRow({0, 10, 10}, location, 1, window);
  }
  AggregateLimits limits;
  limits.locations = 4;
  ProfileAggregate aggregate(limits);
  aggregate.Add(window);
  uint64_t faults = 0;
  for (const LocationTotals& location : aggregate.locations()) {
    if (location.location.kernel_cause == KernelCause::kPageFault)
      faults += location.counts.samples;
  }
  EXPECT_LE(aggregate.locations().size(), 6u);
  EXPECT_EQ(faults, 10u);
}

TEST(AggregateLimits, StacksPastTheLimitBecomeOtherOfTheirRank) {
  AggregateLimits limits;
  limits.stacks = 2;
  ProfileAggregate aggregate(limits);
  Window window = EmptyWindow("node0", 1);
  window.paths.frame_names = {"a", "b", "c"};
  window.paths.stacks = {{3, {0}, 1}, {3, {0, 1}, 2}};
  aggregate.Add(window);
  EXPECT_FALSE(aggregate.lost().Any());
  window.paths.stacks.push_back({3, {2}, 5});
  aggregate.Add(window);
  EXPECT_EQ(aggregate.lost().stack_samples, 5u);
  uint64_t samples = 0;
  for (const ReportStack& stack : aggregate.paths().stacks()) samples += stack.samples;
  EXPECT_EQ(samples, 11u);

  ProfileAggregate copy(limits);
  copy.Merge(aggregate);
  EXPECT_EQ(copy.lost().stack_samples, 5u) << "a loss is counted once";
}

TEST(AggregateLimits, CallsPastTheLimitAreCounted) {
  AggregateLimits limits;
  limits.calls = 1;
  ProfileAggregate aggregate(limits);
  Window window = EmptyWindow("node0", 1);
  window.locations = {FunctionAt(0x3000), LoopAt(0x1000)};
  window.paths.calls = {{0, 1, 3}};
  aggregate.Add(window);
  EXPECT_FALSE(aggregate.lost().Any());
  window.paths.calls.push_back({0, std::nullopt, 2});
  aggregate.Add(window);
  EXPECT_EQ(aggregate.lost().stack_samples, 2u);
  EXPECT_EQ(aggregate.paths().calls(), (std::vector<WindowCall>{{0, 1, 6}}));

  ProfileAggregate copy(limits);
  copy.Merge(aggregate);
  EXPECT_EQ(copy.lost().stack_samples, 2u) << "a loss is counted once";
}

TEST(AggregateLimits, LoopsThatAreNotToldApartAreNone) {
  AggregateLimits limits;
  limits.locations = 2;
  ProfileAggregate aggregate(limits);
  Window window = EmptyWindow("node0", 1);
  window.locations = {FunctionAt(0x3000), LoopAt(0x1000), LoopAt(0x2000), FunctionAt(0x4000)};
  window.paths.calls = {{0, 1, 3}, {0, 2, 4}, {3, 1, 5}};
  aggregate.Add(window);
  EXPECT_EQ(aggregate.paths().calls(), (std::vector<WindowCall>{{0, std::nullopt, 4}, {0, 1, 3}}));
  EXPECT_EQ(aggregate.lost().stack_samples, 5u) << "of a place that is not told apart";
}

TEST(AggregateLimits, RanksAndNodes) {
  AggregateLimits limits;
  limits.ranks = 1;
  limits.nodes = 1;
  ProfileAggregate aggregate(limits);
  Window window = EmptyWindow("node0", 1);
  window.ranks.resize(2);
  window.ranks[1].rank = 1;
  aggregate.Add(window);
  EXPECT_EQ(aggregate.lost().ranks, 1u);
  aggregate.Add(EmptyWindow("node1", 1));
  aggregate.Add(EmptyWindow("node2", 1));
  ASSERT_EQ(aggregate.nodes().size(), 2u);
  EXPECT_EQ(aggregate.nodes()[1].node, "(other)");
  EXPECT_EQ(aggregate.nodes()[1].windows, 2u);
}

}  // namespace
}  // namespace perfd::daemon
