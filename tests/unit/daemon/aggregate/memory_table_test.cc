// Sampled accesses to memory of a profile: what is added up, in any order, and what the limits leave out.
#include "daemon/aggregate/findings/memory_table.h"

#include <gtest/gtest.h>

#include "daemon/aggregate/profile_aggregate.h"

namespace perfd::daemon {
namespace {

SampledAccess Load(MemoryLevel level, uint64_t latency, TlbResult tlb = TlbResult::kHit) {
  SampledAccess access;
  access.period = 100;
  access.access.latency_cycles = latency;
  access.access.source.operation = MemoryOperation::kLoad;
  access.access.source.level = level;
  access.access.source.tlb = tlb;
  return access;
}

MemoryRow Row(int32_t rank, uint32_t location, uint64_t instruction) {
  return {.rank = rank, .pid = 100 + rank, .location = location, .instruction = instruction};
}

void Add(MemoryRow& row, const SampledAccess& access, int times = 1) {
  for (int i = 0; i < times; ++i) {
    row.profile.Add(access);
    row.times.Add(access);
  }
}

Window WindowOf(const std::string& node, std::vector<MemoryRow> rows) {
  Window window;
  window.node = node;
  window.findings.memory.events = {{"mem-loads", 30}};
  window.findings.memory.rows = std::move(rows);
  return window;
}

const std::vector<uint32_t> kSame = {0, 1, 2, 3};

TEST(MemoryTable, AddsUpByPlaceInstructionAndRank) {
  MemoryTable table;
  MemoryRow near = Row(0, 0, 0x10), far = Row(0, 0, 0x20), other = Row(1, 0, 0x10);
  Add(near, Load(MemoryLevel::kL1, 10), 40);
  Add(far, Load(MemoryLevel::kLocalDram, 400, TlbResult::kWalk), 10);
  Add(other, Load(MemoryLevel::kL1, 10), 40);
  table.Add(WindowOf("a", {near, far, other}), kSame);
  table.Add(WindowOf("a", {near}), kSame);
  const MemoryState state = table.State(kSame);
  ASSERT_EQ(state.places.size(), 1u);
  EXPECT_EQ(state.places[0].sums.profile.all.samples, 130u);
  ASSERT_EQ(state.references.size(), 2u);
  EXPECT_EQ(state.references[0].sums.profile.all.samples, 120u);
  EXPECT_EQ(state.references[1].instruction, ElfAddress(0x20));
  ASSERT_EQ(state.ranks.size(), 2u);
  EXPECT_EQ(state.ranks[0].memory.all.samples, 90u);
  EXPECT_EQ(state.ranks[0].memory.walks.samples, 10u);
  EXPECT_EQ(state.ranks[0].memory.beyond_cycles, 10u * 400 * 100);
  EXPECT_EQ(state.ranks[0].memory.told_cycles, (80u * 10 + 10 * 400) * 100);
  EXPECT_EQ(state.job.profile.all.samples, 130u);
  // Clusters: rank 0 twice, rank 1 once.
  const BeyondShare l2 = state.places[0].sums.Figures().beyond[1];
  EXPECT_EQ(state.places[0].sums.squares[1].clusters, 3u);
  ASSERT_EQ(l2.why_not, NoShare::kNone);
  EXPECT_NEAR(l2.share, 4000.0 / (4000 + 1200), 1e-12);
  EXPECT_LT(l2.interval.low, l2.share);
  EXPECT_GT(l2.interval.high, l2.share);
}

// Threads of a process in one window resemble each other, windows of a process and processes do not.
TEST(MemoryTable, RowsOfAProcessInAWindowAreOneCluster) {
  MemoryTable one, many;
  MemoryRow a = Row(0, 0, 0x10), b = Row(0, 0, 0x20);
  Add(a, Load(MemoryLevel::kL1, 10), 30);
  Add(b, Load(MemoryLevel::kL3, 90), 30);
  one.Add(WindowOf("a", {a, b}), kSame);
  many.Add(WindowOf("a", {a}), kSame);
  many.Add(WindowOf("a", {b}), kSame);
  EXPECT_EQ(one.State(kSame).job.squares[1].clusters, 1u);
  EXPECT_EQ(many.State(kSame).job.squares[1].clusters, 2u);
  EXPECT_EQ(one.State(kSame).job.times, many.State(kSame).job.times);
}

TEST(MemoryTable, WhatFindsNoRoomIsCountedAndTheJobHoldsIt) {
  MemoryTable table({.events = 1, .places = 1, .references = 1, .ranks = 1});
  MemoryRow first = Row(0, 0, 0x10), second = Row(1, 1, 0x20);
  Add(first, Load(MemoryLevel::kL1, 10), 3);
  Add(second, Load(MemoryLevel::kL1, 10), 5);
  table.Add(WindowOf("a", {first, second}), kSame);
  table.Add(WindowOf("a", {first, second}), kSame);
  const MemoryState state = table.State(kSame);
  EXPECT_EQ(state.places.size(), 1u);
  EXPECT_EQ(state.references.size(), 1u);
  EXPECT_EQ(state.ranks.size(), 1u);
  EXPECT_EQ(state.job.profile.all.samples, 16u);
  EXPECT_EQ(state.lost, (MemoryLost{0, 10, 10, 10}));
  MemoryTable frozen;
  frozen.Add(WindowOf("a", {first}), kSame);
  frozen.Freeze();
  frozen.Add(WindowOf("a", {first, second}), kSame);
  EXPECT_EQ(frozen.State(kSame).places.size(), 1u);
  EXPECT_GT(frozen.Bytes(), sizeof(MemorySums));
}

TEST(MemoryTable, EventsOfAllWindowsAreListedOnce) {
  MemoryTable table;
  Window window = WindowOf("a", {});
  table.Add(window, kSame);
  table.Add(window, kSame);
  window.findings.memory.events = {{"mem-stores", 0}};
  window.findings.memory.lost = 7;
  table.Add(window, kSame);
  EXPECT_EQ(table.State(kSame).events.size(), 2u);
  EXPECT_EQ(table.State(kSame).lost.accesses, 7u);
  EXPECT_FALSE(table.empty());
  EXPECT_TRUE(MemoryTable().empty());
}

// A foreign window cannot make the sums of others overflow.
TEST(MemoryTable, TheLargestClustersFitTheirSquares) {
  MemoryTable table;
  MemoryRow row = Row(0, 0, 0x10);
  for (BorderTime& border : row.times.borders) {
    border.told = 1;
    border.told_cycles = border.beyond_cycles = kMostWindowCycles;
    border.told_squares = border.beyond_squares =
        absl::uint128(kMostWindowCycles) * kMostWindowCycles;
  }
  row.profile.all = {1, 1};
  for (int i = 0; i < 8192; ++i) table.Add(WindowOf("a", {row}), kSame);
  const MemorySums job = table.State(kSame).job;
  EXPECT_EQ(job.times.borders[0].told_cycles, 8192 * kMostWindowCycles);
  EXPECT_EQ(job.squares[0].xx, absl::uint128(kMostWindowCycles) * kMostWindowCycles * 8192);
}

}  // namespace
}  // namespace perfd::daemon
