#include "daemon/report/hot_loops.h"

#include <gtest/gtest.h>

#include "tests/unit/daemon/aggregate/random_windows.h"

namespace perfd::daemon {
namespace {

LoopMeasurement Said(const CodeLocation& at, int32_t pid, MeasureState state) {
  LoopMeasurement loop;
  loop.node = "node0";
  loop.pid = pid;
  loop.loop_id = LocationId(at);
  loop.revision = 1;
  loop.state = state;
  return loop;
}

const HeatedLoop& Find(const std::vector<HeatedLoop>& loops, const CodeLocation& at) {
  for (const HeatedLoop& loop : loops) {
    if (loop.loop.loop_id == LocationId(at)) return loop;
  }
  ADD_FAILURE() << "no such loop";
  return loops.front();
}

TEST(HeatOfLoops, HasEveryComputeLoopWithWhatIsKnownOfIt) {
  Window window = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 60, window);
  AddRow({1, 11, 11}, LoopAt(0x1000), 10, window);
  AddRow({0, 10, 10}, LoopAt(0x2000), 20, window);
  CodeLocation waiting = LoopAt(0x3000);
  waiting.loop_kind = LoopKind::kWaiting;
  AddRow({0, 10, 10}, waiting, 500, window);
  CodeLocation outside = LoopAt(0x4000);
  outside.category = Category::kOutsideLoop;
  outside.loop.reset();
  AddRow({0, 10, 10}, outside, 5, window);
  ProfileAggregate aggregate;
  aggregate.Add(window);
  RecentHeat::ById recent;
  recent[LocationId(LoopAt(0x2000))] = {7, 70};
  const auto loops = HeatOfLoops(aggregate, recent);
  ASSERT_EQ(loops.size(), 2u);
  const HeatedLoop& first = Find(loops, LoopAt(0x1000));
  EXPECT_EQ(first.heat.id, first.loop.loop_id);
  EXPECT_EQ(first.heat.whole_ns, 70 * 10'000'000u);
  EXPECT_EQ(first.heat.recent_ns, 0u);
  EXPECT_FALSE(first.heat.settled);
  EXPECT_EQ(first.loop.header, LoopAt(0x1000).loop->header);
  EXPECT_EQ(first.loop.location_key, LocationKey(LoopAt(0x1000)));
  EXPECT_EQ(Find(loops, LoopAt(0x2000)).heat.recent_samples, 7u);
  EXPECT_EQ(Find(loops, LoopAt(0x2000)).heat.recent_ns, 70u);
}

TEST(HotLoops, AreThoseThatCallTheTimeAsWell) {
  Window window = EmptyWindow("node0", 1);
  const CodeLocation callee = FunctionAt(0x3000);
  AddRow({0, 10, 10}, LoopAt(0x2000), 20, window);
  AddRow({0, 10, 10}, callee, 80, window);
  window.locations.push_back(LoopAt(0x1000));  // no sample is in it
  window.paths.calls = {{1, 2, 30}};
  ProfileAggregate aggregate;
  aggregate.Add(window);
  HotspotSpec spec;
  spec.coverage_ratio = 0.7;
  const auto loops = HotLoops(aggregate, spec);
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0].header, 0x1000u);
  EXPECT_EQ(Find(HeatOfLoops(aggregate, {}), LoopAt(0x1000)).heat.whole_ns, 80 * 10'000'000u);
}

TEST(HeatOfLoops, ALoopIsSettledWhenNoRankHasMoreToSay) {
  const auto settled = [](std::vector<MeasureState> states) {
    Window window = EmptyWindow("node0", 1);
    AddRow({0, 10, 10}, LoopAt(0x1000), 60, window);
    for (size_t i = 0; i < states.size(); ++i)
      window.findings.measurements.push_back(Said(LoopAt(0x1000), 10 + static_cast<int32_t>(i), states[i]));
    ProfileAggregate aggregate;
    aggregate.Add(window);
    return HeatOfLoops(aggregate, {})[0].heat.settled;
  };
  using enum MeasureState;
  EXPECT_FALSE(settled({}));
  EXPECT_TRUE(settled({kMeasured, kRefused}));
  EXPECT_FALSE(settled({kMeasured, kOpen}));
  EXPECT_FALSE(settled({kOpen, kMeasured}));
  EXPECT_FALSE(settled({kNeverEntered}));  // it may yet be entered
}

TEST(HeatOfLoops, WhatIsKnownOfALoopIsOfTheRankThatKnowsLeast) {
  Window window = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 60, window);
  const auto figures = [](const char* variant, uint32_t runs) {
    VariantFigures out;
    out.variant = variant;
    out.valid_runs = runs;
    return out;
  };
  LoopMeasurement measured = Said(LoopAt(0x1000), 10, MeasureState::kMeasured);
  measured.figures = {figures("LS", 31), figures("FP", 31)};
  LoopMeasurement open = Said(LoopAt(0x1000), 11, MeasureState::kOpen);
  open.figures = {figures("LS", 5), figures("FP", 0)};
  open.open = {"FP", "DL1", "CTRL"};
  window.findings.measurements = {measured, open};
  ProfileAggregate aggregate;
  aggregate.Add(window);
  const LoopLearning known = HeatOfLoops(aggregate, {})[0].knowledge;
  EXPECT_FALSE(known.settled);
  EXPECT_DOUBLE_EQ(known.open_ratio, 0.75);
  EXPECT_EQ(known.learnt, 67u);
}

TEST(SharesOfHot, AreKnownOnceTheyHaveIntervals) {
  ProfileAggregate aggregate;
  EXPECT_EQ(SharesOfHot(aggregate, {}).hot, 0);
  Window window = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 60, window);
  window.accounting.seen = window.accounting.kept = 60;
  aggregate.Add(window);
  EXPECT_EQ(SharesOfHot(aggregate, {}).hot, 1);
  EXPECT_EQ(SharesOfHot(aggregate, {}).samples, 60u);
}

// The second thread spins: by CPU time the parallel loop is heavier, by elapsed time the serial one.
TEST(HotLoops, ElapsedTimeDecidesWhereItIsDivided) {
  Window window = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 40, window);
  AddRow({0, 10, 10}, LoopAt(0x2000), 30, window);
  AddRow({0, 10, 11}, LoopAt(0x2000), 30, window);
  ProfileAggregate by_cpu;
  by_cpu.Add(window);
  EXPECT_EQ(HotLoops(by_cpu, {})[0].loop_id, LocationId(LoopAt(0x2000)));
  window.rank_times = {{0, 10, 700, 0}};
  window.rows[0].wall_ns = 400;
  window.rows[1].wall_ns = window.rows[2].wall_ns = 150;
  ProfileAggregate by_wall;
  by_wall.Add(window);
  EXPECT_EQ(HotLoops(by_wall, {})[0].loop_id, LocationId(LoopAt(0x1000)));
  RecentHeat::ById recent;
  recent[LocationId(LoopAt(0x1000))] = {7, 70, 60};
  const auto heated = HeatOfLoops(by_wall, recent);
  EXPECT_EQ(Find(heated, LoopAt(0x1000)).heat.whole_ns, 400u);
  EXPECT_EQ(Find(heated, LoopAt(0x1000)).heat.recent_ns, 60u);
}

}  // namespace
}  // namespace perfd::daemon
