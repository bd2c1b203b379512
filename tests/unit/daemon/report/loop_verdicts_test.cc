#include "daemon/report/loop_verdicts.h"

#include <gtest/gtest.h>

#include "daemon/report/report_builder.h"
#include "tests/unit/daemon/aggregate/random_windows.h"

namespace perfd::daemon {
namespace {

VariantFigures Figures(const char* variant, double value) {
  VariantFigures f;
  f.variant = variant;
  f.base = "REF";
  f.saturation = {value, value - 0.01, value + 0.01};
  f.valid_runs = 31;
  f.edits.changed = 1;
  f.shadows = 5;
  return f;
}

LoopMeasurement Measured(const CodeLocation& at, int32_t pid, int32_t rank, double dl1) {
  LoopMeasurement loop;
  loop.profile_id = "p-000001";
  loop.node = "node0";
  loop.pid = pid;
  loop.rank = rank;
  loop.loop_id = LocationId(at);
  loop.revision = 1;
  loop.state = MeasureState::kMeasured;
  loop.figures = {Figures("LS", 0.97), Figures("FP", 0.2), Figures("DL1", dl1)};
  loop.listings = {{"LS", {{0x10, "add", "nop"}}}};
  loop.cost.pause_ns = 1'000'000;
  return loop;
}

// Loop A: 60 of rank 0, 10 of rank 1; loop B: 20 of rank 0, 10 of rank 1. Rank 0 is the slowest (80 of 100).
ProfileAggregate TwoLoops() {
  Window window = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 60, window);
  AddRow({1, 11, 11}, LoopAt(0x1000), 10, window);
  AddRow({0, 10, 10}, LoopAt(0x2000), 20, window);
  AddRow({1, 11, 11}, LoopAt(0x2000), 10, window);
  window.findings.measurements = {Measured(LoopAt(0x1000), 10, 0, 0.9), Measured(LoopAt(0x1000), 11, 1, 0.5),
                         Measured(LoopAt(0x2000), 10, 0, 0.1)};
  for (int64_t begin : {0, 500'000}) {
    AuditEntry entry;
    entry.node = "node0";
    entry.pause_ns = 1'000'000;
    entry.unix_ns = begin + entry.pause_ns;  // told when it was over
    window.audit.push_back(entry);
  }
  ProfileAggregate aggregate;
  aggregate.Add(window);
  return aggregate;
}

TEST(FillVerdicts, OrdersByGainOfTheSlowestRank) {
  const Report report = BuildReport({}, TwoLoops());
  ASSERT_EQ(report.findings.verdicts.size(), 2u);
  const LoopVerdict& first = report.findings.verdicts[0];
  EXPECT_EQ(first.loop_id, LocationId(LoopAt(0x2000)));  // 0.25 x 0.9 before 0.75 x 0.1
  EXPECT_NEAR(first.gains[0].of_job.value, 0.25 * 0.9, 1e-12);
  EXPECT_NEAR(report.findings.verdicts[1].gains[0].of_job.value, 0.75 * 0.1, 1e-12);
  EXPECT_EQ(report.findings.verdicts[1].slowest_rank, "rank 0 on node0");
  EXPECT_EQ(report.findings.verdicts[1].agreement, "all 2 ranks agree");
  EXPECT_EQ(report.findings.verdicts[1].ranks.size(), 2u);
  ASSERT_EQ(first.listings.size(), 1u);
  EXPECT_EQ(first.listings[0].lines[0].changed, "nop");
}

// Its copies hold the loop inside, and so do the times that its saturations are of.
TEST(FillVerdicts, ALoopWithLoopsInsideHasTheirTimeAsWell) {
  CodeLocation outer = LoopAt(0x1000), inner = LoopAt(0x1100);
  outer.loop->innermost = false;
  outer.loop->depth = 1;
  inner.loop->depth = 2;
  inner.loop->parent_header = 0x1000;
  Window window = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, outer, 60, window);
  AddRow({0, 10, 10}, inner, 20, window);
  AddRow({0, 10, 10}, LoopAt(0x2000), 20, window);
  window.findings.measurements = {Measured(outer, 10, 0, 0.5)};
  ProfileAggregate aggregate;
  aggregate.Add(window);
  const Report report = BuildReport({}, aggregate);
  ASSERT_EQ(report.findings.verdicts.size(), 1u);
  EXPECT_DOUBLE_EQ(report.findings.verdicts[0].share, 0.8);
  EXPECT_NEAR(report.findings.verdicts[0].gains[0].of_job.value, 0.8 * 0.5, 1e-12);
}

// What it calls is part of its copies, too.
TEST(FillVerdicts, ALoopThatCallsHasTheTimeOfWhatItCalls) {
  Window window = EmptyWindow("node0", 1);
  const CodeLocation callee = FunctionAt(0x3000);
  AddRow({0, 10, 10}, LoopAt(0x1000), 10, window);
  AddRow({0, 10, 10}, callee, 60, window);
  AddRow({0, 10, 10}, LoopAt(0x2000), 30, window);
  window.paths.calls = {{1, 0, 400}};
  window.findings.measurements = {Measured(LoopAt(0x1000), 10, 0, 0.5)};
  ProfileAggregate aggregate;
  aggregate.Add(window);
  const LoopVerdict verdict = BuildReport({}, aggregate).findings.verdicts.at(0);
  EXPECT_NEAR(verdict.share, 0.7, 1e-12);
  EXPECT_NEAR(verdict.slowest_share, 0.7, 1e-12);
  EXPECT_NEAR(verdict.gains.at(0).of_job.value, 0.7 * 0.5, 1e-12);
  EXPECT_LT(verdict.gains[0].of_job.low, verdict.gains[0].of_job.value);
}

// Rank 0 is the slowest, and runs something else.
TEST(FillVerdicts, WhatOtherRanksCallIsNoGainOfTheSlowest) {
  Window window = EmptyWindow("node0", 1);
  const CodeLocation callee = FunctionAt(0x3000);
  AddRow({0, 10, 10}, LoopAt(0x2000), 100, window);
  AddRow({1, 11, 11}, LoopAt(0x1000), 10, window);
  AddRow({1, 11, 11}, callee, 60, window);
  window.paths.calls = {{2, 1, 400}};
  window.findings.measurements = {Measured(LoopAt(0x1000), 11, 1, 0.5)};
  ProfileAggregate aggregate;
  aggregate.Add(window);
  const LoopVerdict verdict = BuildReport({}, aggregate).findings.verdicts.at(0);
  EXPECT_NEAR(verdict.share, 70.0 / 170, 1e-12);
  EXPECT_EQ(verdict.slowest_share, 0);
}

// A loop that is there for the loops inside it alone, and for what it calls.
TEST(FillVerdicts, ALoopWithoutSamplesHasTheTimeOfLoopsInsideAndOfCalls) {
  CodeLocation outer = LoopAt(0x1000), inner = LoopAt(0x1100);
  outer.loop->innermost = false;
  outer.loop->depth = 1;
  inner.loop->depth = 2;
  inner.loop->parent_header = 0x1000;
  const CodeLocation callee = FunctionAt(0x3000);
  Window window = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, inner, 50, window);
  AddRow({0, 10, 10}, callee, 10, window);
  AddRow({0, 10, 10}, LoopAt(0x2000), 40, window);
  window.locations.push_back(outer);
  window.paths.calls = {{1, 3, 400}};
  window.findings.measurements = {Measured(outer, 10, 0, 0.5)};
  ProfileAggregate aggregate;
  aggregate.Add(window);
  EXPECT_NEAR(BuildReport({}, aggregate).findings.verdicts.at(0).share, 0.6, 1e-12);
}

TEST(FillVerdicts, WhatIsCalledOnAPathThatWasLeftOutMayBeNoneOfTheGain) {
  Window window = EmptyWindow("node0", 1);
  const CodeLocation callee = FunctionAt(0x3000);
  AddRow({0, 10, 10}, LoopAt(0x1000), 50, window);
  AddRow({0, 10, 10}, callee, 50, window);
  window.paths.calls = {{1, 0, 400}};
  window.findings.measurements = {Measured(LoopAt(0x1000), 10, 0, 0.5)};
  const auto low = [&window] {
    ProfileAggregate aggregate;
    aggregate.Add(window);
    return BuildReport({}, aggregate).findings.verdicts.at(0).gains.at(0).of_job.low;
  };
  const double whole = low();
  window.findings.measurements[0].excluded_paths.resize(1);
  EXPECT_LT(low(), whole / 1.5);
}

// The other thread spins: half of the CPU time, most of the elapsed time.
TEST(FillVerdicts, GainsAreOfElapsedTimeWhereItIsDivided) {
  Window window = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 45, window);
  CodeLocation spin = LoopAt(0x9000);
  spin.category = Category::kLibrary;
  spin.loop_kind = LoopKind::kWaiting;
  AddRow({0, 10, 11}, spin, 55, window);
  window.rank_times = {{0, 10, 1000, 0}};
  window.rows[0].wall_ns = 860;
  window.findings.measurements = {Measured(LoopAt(0x1000), 10, 0, 0.4)};
  ProfileAggregate aggregate;
  aggregate.Add(window);
  const Report report = BuildReport({}, aggregate);
  ASSERT_EQ(report.findings.verdicts.size(), 1u);
  EXPECT_DOUBLE_EQ(report.findings.verdicts[0].share, 0.86);
  EXPECT_NEAR(report.findings.verdicts[0].gains[0].of_job.value, 0.86 * (1 - 0.4), 1e-12);
}

TEST(FillVerdicts, SaysWhatInjectionAdded) {
  const Report report = BuildReport({}, TwoLoops());
  EXPECT_EQ(report.findings.injection.sum.pause_ns, 3'000'000);
  // On record: two pauses that overlap by half. The third is not, and is added in full.
  EXPECT_EQ(report.findings.injection.added_wall_ns, 1'500'000 + 1'000'000);
  EXPECT_DOUBLE_EQ(report.findings.injection.added_ratio, 0.0025);  // of one second
}

TEST(FillVerdicts, LimitsTheRanksShown) {
  ReportLimits limits;
  limits.measured_ranks = 1;
  const Report report = BuildReport({}, TwoLoops(), limits);
  EXPECT_EQ(report.findings.verdicts[1].ranks.size(), 1u);
  EXPECT_EQ(report.findings.verdicts[1].ranks_left_out, 1u);
}

TEST(FillVerdicts, OfADryRunWithWhatItWouldCostAndWhoRefuses) {
  Window window = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 60, window);
  LoopMeasurement would = Measured(LoopAt(0x1000), 10, 0, 0.5);
  would.figures.clear();
  would.cost = {};
  would.state = MeasureState::kOpen;
  would.open = {"LS", "FP"};
  would.predicted = {20, 5, 100};
  LoopMeasurement would_not = would;
  would_not.pid = 11;
  would_not.rank = 1;
  would_not.state = MeasureState::kRefused;
  would_not.reason = "another build";
  would_not.open.clear();
  would_not.predicted = {};
  window.findings.measurements = {would, would_not};
  ProfileAggregate aggregate;
  aggregate.Add(window);
  const Report report = BuildReport({}, aggregate);
  ASSERT_EQ(report.findings.verdicts.size(), 1u);
  const LoopVerdict& loop = report.findings.verdicts[0];
  EXPECT_EQ(loop.state, MeasureState::kOpen);
  EXPECT_EQ(loop.predicted, (PredictedCost{20, 5, 100}));
  EXPECT_EQ(loop.open, (std::vector<std::string>{"FP", "LS"}));
  EXPECT_EQ(loop.ranks_total, 2u);
  ASSERT_EQ(loop.refusals.size(), 1u);
  EXPECT_EQ(loop.refusals[0].reason, "another build");
  EXPECT_EQ(report.findings.injection, InjectionTotal{});
}

TEST(FillVerdicts, KeepsALoopThatWasNeverSampled) {
  ProfileAggregate aggregate;
  Window window = EmptyWindow("node0", 1);
  window.findings.measurements = {Measured(LoopAt(0x5000), 10, 0, 0.5)};
  aggregate.Add(window);
  const Report report = BuildReport({}, aggregate);
  ASSERT_EQ(report.findings.verdicts.size(), 1u);
  EXPECT_EQ(report.findings.verdicts[0].share, 0);
}

TEST(TopVerdicts, AreBoundedAndWithoutRanks) {
  const ProfileAggregate aggregate = TwoLoops();
  const Report report = BuildReport({}, aggregate);
  const auto top = TopVerdicts(aggregate, report.loops, 1);
  ASSERT_EQ(top.size(), 1u);
  // Without ranks nobody knows the slowest: 0.7 x 0.5 of the median rank before 0.3 x 0.9.
  EXPECT_EQ(top[0].loop_id, LocationId(LoopAt(0x1000)));
  EXPECT_TRUE(top[0].ranks.empty());
  EXPECT_TRUE(top[0].listings.empty());
}

}  // namespace
}  // namespace perfd::daemon
