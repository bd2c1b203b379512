// Small jobs whose report is known by hand.
#include "daemon/report/report_builder.h"

#include <gtest/gtest.h>

#include <numeric>

#include "daemon/aggregate/paths/called_parts.h"
#include "daemon/report/top_loops.h"
#include "tests/unit/daemon/aggregate/random_windows.h"

namespace perfd::daemon {
namespace {

CodeLocation Waiting() {
  CodeLocation location = LoopAt(0x9000);
  location.category = Category::kLibrary;
  location.module_id = "libmpi";
  location.loop_kind = LoopKind::kWaiting;
  return location;
}

CodeLocation Function(const char* name, Category category) {
  CodeLocation location;
  location.category = category;
  location.module_id = "aa";
  location.function = name;
  return location;
}

// Ranks 0 and 1 on node0 (pids 10, 11), rank 2 on node1, described but never sampled in the loop.
// Loop A: 60 of rank 0 (two threads), 20 of rank 1; waiting: 15 of rank 1; main: 5 of rank 2.
ProfileAggregate SmallJob() {
  Window first = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 40, first);
  AddRow({0, 10, 12}, LoopAt(0x1000), 20, first);
  AddRow({1, 11, 11}, LoopAt(0x1000), 20, first);
  AddRow({1, 11, 11}, Waiting(), 15, first);
  first.accounting.seen = first.accounting.kept = 95;
  first.overhead.job_cpu_ns = 1000;
  first.overhead.kernel_sampling_ns = 5;
  first.overhead.stop_ns = 15;
  Window second = EmptyWindow("node1", 1);
  second.ranks.resize(1);
  second.ranks[0].rank = 2;
  second.ranks[0].pid = 20;
  AddRow({2, 20, 20}, Function("main", Category::kOutsideLoop), 5, second);
  second.accounting.seen = 6;
  second.accounting.kept = 5;
  second.accounting.Drop(DropReason::kQueueFull);
  second.accounting.lost = 4;
  ProfileAggregate aggregate;
  aggregate.Add(first);
  aggregate.Add(second);
  return aggregate;
}

TEST(BuildReport, IntervalsAllowForWhatCouldNotBeSampled) {
  Window window = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 90, window);
  AddRow({0, 10, 10}, LoopAt(0x2000), 10, window);
  const auto report = [&](uint64_t late, double sampled_part) {
    ProfileAggregate all;
    all.Add(window);
    Window more = EmptyWindow("node0", 2);
    more.accounting.late_threads = late;
    more.overhead.job_cpu_ns =
        static_cast<uint64_t>(static_cast<double>(all.totals().cpu_ns) / sampled_part);
    all.Add(more);
    return BuildReport({}, all);
  };
  const Report plain = report(0, 0.4);
  EXPECT_EQ(report(1000, 0.97).loops[0].share_interval, plain.loops[0].share_interval);
  const Report churn = report(1000, 0.4);
  EXPECT_DOUBLE_EQ(churn.loops[0].share, 0.9);
  // All of the 60 % that nobody saw elsewhere, or all of them in it.
  EXPECT_NEAR(churn.loops[0].share_interval.low, 0.4 * plain.loops[0].share_interval.low, 1e-6);
  EXPECT_NEAR(churn.loops[1].share_interval.high, 0.6 + 0.4 * plain.loops[1].share_interval.high,
              1e-6);
}

TEST(BuildReport, RowsSayWhenTheyWereSeen) {
  Window first = EmptyWindow("node0", 1), second = EmptyWindow("node0", 2);
  first.start_unix_ns = 1'700'000'000'000'000'000;
  second.start_unix_ns = first.start_unix_ns + 30'000'000'000;
  AddRow({0, 10, 10}, LoopAt(0x1000), 40, first);
  AddRow({0, 10, 10}, LoopAt(0x2000), 20, second);
  ProfileAggregate aggregate;
  aggregate.Add(second);
  aggregate.Add(first);
  const Report report = BuildReport({}, aggregate);
  ASSERT_EQ(report.loops.size(), 2u);
  EXPECT_EQ(report.loops[0].seen.first_ns, 0);
  EXPECT_EQ(report.loops[0].seen.last_ns, 1'000'000'000);
  EXPECT_EQ(report.loops[1].seen.first_ns, 30'000'000'000);
  EXPECT_EQ(report.loops[1].seen.last_ns, 31'000'000'000);
}

CodeLocation Kernel(KernelCause cause, std::string caller = "") {
  CodeLocation location;
  location.category = Category::kKernel;
  location.function = "[kernel]";
  location.kernel_cause = cause;
  location.kernel_caller = std::move(caller);
  return location;
}

TEST(BuildReport, CausesOfKernelTimeAddUpToIt) {
  Window window = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 50, window);
  AddRow({0, 10, 10}, Kernel(KernelCause::kPageFault, "Touch"), 7, window);
  AddRow({0, 10, 10}, Kernel(KernelCause::kPageFault, "memset"), 6, window);
  AddRow({0, 10, 10}, Kernel(KernelCause::kMemoryReturn, "munmap"), 20, window);
  AddRow({0, 10, 10}, Kernel(KernelCause::kUnknown), 3, window);
  ProfileAggregate aggregate;
  aggregate.Add(window);
  const Report report = BuildReport({}, aggregate);
  const std::vector<KernelShare>& causes = report.time.kernel;
  ASSERT_EQ(causes.size(), 3u);
  EXPECT_EQ(causes[0].cause, KernelCause::kMemoryReturn);
  EXPECT_EQ(causes[0].samples, 20u);
  EXPECT_NEAR(causes[0].share, 20.0 / 86, 1e-12);
  EXPECT_EQ(causes[1].cause, KernelCause::kPageFault);
  EXPECT_EQ(causes[1].samples, 13u);
  EXPECT_EQ(causes[2].cause, KernelCause::kUnknown);
  const double sum = causes[0].share + causes[1].share + causes[2].share;
  EXPECT_NEAR(sum, report.category_share[static_cast<size_t>(Category::kKernel)], 1e-15);
  EXPECT_EQ(causes[0].samples + causes[1].samples + causes[2].samples,
            report.category_samples[static_cast<size_t>(Category::kKernel)]);
  EXPECT_EQ(report.functions.size(), 4u) << "callers are told apart";
}

// 10 of the loop itself, 60 in `f`, of whose 20 paths 15 come from the loop; 30 elsewhere.
ProfileAggregate JobThatCalls() {
  Window window = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 10, window);
  AddRow({0, 10, 10}, Function("f", Category::kOutsideLoop), 60, window);
  AddRow({0, 10, 10}, LoopAt(0x2000), 30, window);
  window.paths.calls = {{1, 0, 15}, {1, std::nullopt, 5}};
  ProfileAggregate aggregate;
  aggregate.Add(window);
  return aggregate;
}

TEST(BuildReport, LoopsHaveTheTimeOfWhatTheyCall) {
  const Report report = BuildReport({}, JobThatCalls());
  ASSERT_EQ(report.loops.size(), 2u);
  const ReportRow& caller = report.loops[0];
  EXPECT_EQ(caller.location.loop->header, 0x1000u) << "with what it calls it is the heavier one";
  EXPECT_NEAR(caller.share, 0.1, 1e-12);
  EXPECT_NEAR(caller.called.share, 0.45, 1e-12);
  EXPECT_LT(caller.called.interval.low, 0.45);
  EXPECT_GT(caller.called.interval.high, 0.45);
  EXPECT_NEAR(caller.inclusive_share, 0.55, 1e-12);
  EXPECT_TRUE(caller.hot);
  EXPECT_EQ(report.loops[1].called, CalledShare{});
  EXPECT_NEAR(report.loops[1].inclusive_share, 0.3, 1e-12);
  EXPECT_NEAR(report.functions[0].share, 0.6, 1e-12) << "its own time stays its own";
}

TEST(BuildReport, ALoopWithoutSamplesIsThereForWhatItCalls) {
  Window window = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, Function("f", Category::kOutsideLoop), 60, window);
  window.locations.push_back(LoopAt(0x1000));
  window.paths.calls = {{0, 1, 15}};
  ProfileAggregate aggregate;
  aggregate.Add(window);
  const Report report = BuildReport({}, aggregate);
  ASSERT_EQ(report.loops.size(), 1u);
  EXPECT_EQ(report.loops[0].samples, 0u);
  EXPECT_NEAR(report.loops[0].called.share, 1, 1e-12);
  EXPECT_TRUE(report.loops[0].hot);
  EXPECT_EQ(TopLoops(aggregate, 5).size(), 1u);
}

TEST(BuildReport, AFewPathsAreNoEvidence) {
  Window window = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 10, window);
  AddRow({0, 10, 10}, Function("f", Category::kOutsideLoop), 60, window);
  window.paths.calls = {{1, 0, kLeastPaths - 1}};
  ProfileAggregate aggregate;
  aggregate.Add(window);
  EXPECT_EQ(BuildReport({}, aggregate).loops[0].called, CalledShare{});
}

TEST(BuildReport, WithoutKernelTimeThereAreNoCauses) {
  EXPECT_TRUE(BuildReport({}, SmallJob()).time.kernel.empty());
}

TEST(BuildReport, SharesAndTables) {
  const Report report = BuildReport({}, SmallJob());
  ASSERT_EQ(report.loops.size(), 1u);
  ASSERT_EQ(report.waiting.size(), 1u);
  ASSERT_EQ(report.functions.size(), 1u);
  EXPECT_DOUBLE_EQ(report.loops[0].share, 0.8);
  EXPECT_DOUBLE_EQ(report.waiting[0].share, 0.15);
  EXPECT_DOUBLE_EQ(report.functions[0].share, 0.05);
  EXPECT_DOUBLE_EQ(report.time.waiting_share, 0.15);
  EXPECT_DOUBLE_EQ(report.category_share[static_cast<size_t>(Category::kLoop)], 0.8);
  EXPECT_EQ(report.category_samples[static_cast<size_t>(Category::kLibrary)], 15u);
  EXPECT_LT(report.loops[0].share_interval.low, 0.8);
  EXPECT_GT(report.loops[0].share_interval.high, 0.8);
  EXPECT_TRUE(report.loops[0].hot);
  EXPECT_FALSE(report.waiting[0].hot);
}

// A rank that uses 10 s: `loop_s` in loop A, 1 s waiting, the rest in main; sampled every `each_ms`.
Window TenSeconds(const std::string& node, int32_t rank, uint64_t loop_s, uint64_t each_ms) {
  Window window = EmptyWindow(node, 1);
  window.setup.frequency_hz = 1000 / static_cast<double>(each_ms);
  const WindowThread thread{rank, 10, 10};
  const uint64_t per_second = 1000 / each_ms;
  AddRow(thread, LoopAt(0x1000), loop_s * per_second, window);
  AddRow(thread, Waiting(), per_second, window);
  AddRow(thread, Function("main", Category::kOutsideLoop), (9 - loop_s) * per_second, window);
  for (WindowRow& row : window.rows) row.weight = row.samples * each_ms * 1'000'000;
  return window;
}

// One node is sampled twenty times as often as the other: the truth is 2 and 8 of 10 s in the loop, 7 and 1 in main. Of the
// samples 23 % are in the loop.
TEST(BuildReport, SharesAreOfTimeWhenNodesAreSampledAtDifferentRates) {
  for (const char* event : {"cpu-clock", "cycles:u"}) {
    SCOPED_TRACE(event);
    ProfileAggregate aggregate;
    for (Window window : {TenSeconds("node0", 0, 2, 5), TenSeconds("node1", 1, 8, 100)}) {
      window.setup.event = event;
      aggregate.Add(window);
    }
    const Report report = BuildReport({}, aggregate);
    ASSERT_EQ(report.loops.size(), 1u);
    const ReportRow& loop = report.loops[0];
    EXPECT_EQ(loop.samples, 400u + 80);
    EXPECT_DOUBLE_EQ(loop.share, 0.5);
    EXPECT_DOUBLE_EQ(loop.inclusive_share, 0.5);
    EXPECT_LT(loop.share_interval.low, 0.5);
    EXPECT_GT(loop.share_interval.high, 0.5);
    EXPECT_DOUBLE_EQ(loop.imbalance, 8 / 5.0);
    EXPECT_EQ(loop.worst_rank, "rank 1 on node1");
    EXPECT_DOUBLE_EQ(loop.ranks[0].share_of_rank, 0.2);
    EXPECT_DOUBLE_EQ(loop.ranks[1].share_of_rank, 0.8);
    EXPECT_DOUBLE_EQ(loop.ranks[1].seconds, 8);
    EXPECT_DOUBLE_EQ(loop.threads[1].share_of_thread, 0.8);
    EXPECT_DOUBLE_EQ(report.functions[0].share, 0.4);
    EXPECT_DOUBLE_EQ(report.waiting[0].share, 0.1);
    EXPECT_DOUBLE_EQ(report.time.waiting_share, 0.1);
    EXPECT_DOUBLE_EQ(report.category_share[static_cast<size_t>(Category::kLoop)], 0.5);
    EXPECT_EQ(report.category_samples[static_cast<size_t>(Category::kLoop)], 480u);
    EXPECT_DOUBLE_EQ(report.ranks[0].seconds, 10);
    EXPECT_DOUBLE_EQ(report.ranks[1].seconds, 10);
    EXPECT_DOUBLE_EQ(report.imbalance, 1);
    EXPECT_DOUBLE_EQ(TopLoops(aggregate, 1)[0].share, 0.5);
  }
}

// The governor slowed the only rank down after the first of two equal windows.
TEST(BuildReport, SharesAreOfTimeWhenTheRateChanges) {
  ProfileAggregate aggregate;
  Window slow = TenSeconds("node0", 0, 8, 100);
  slow.sequence = 2;
  aggregate.Add(TenSeconds("node0", 0, 2, 5));
  aggregate.Add(slow);
  const Report report = BuildReport({}, aggregate);
  EXPECT_DOUBLE_EQ(report.loops[0].share, 0.5);
  EXPECT_DOUBLE_EQ(report.loops[0].ranks[0].share_of_rank, 0.5);
  EXPECT_DOUBLE_EQ(report.loops[0].threads[0].share_of_thread, 0.5);
  EXPECT_DOUBLE_EQ(report.ranks[0].seconds, 20);
}

// Loop B has one sample in nine, of a rank that is sampled seldom, and so most of the time: it comes first, and is the hot one.
TEST(BuildReport, TheHeaviestHasTheMostTimeNotTheMostSamples) {
  Window fast = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 8, fast);
  Window slow = EmptyWindow("node1", 1);
  AddRow({1, 11, 11}, LoopAt(0x2000), 1, slow);
  slow.rows[0].weight = 1'000'000'000;
  slow.setup.frequency_hz = 1;
  ProfileAggregate aggregate;
  aggregate.Add(fast);
  aggregate.Add(slow);
  ProfileStatus status;
  status.spec.hotspots.coverage_ratio = 0.8;
  const Report report = BuildReport(status, aggregate);
  ASSERT_EQ(report.loops.size(), 2u);
  EXPECT_EQ(report.loops[0].id, LocationId(LoopAt(0x2000)));
  EXPECT_TRUE(report.loops[0].hot);
  EXPECT_FALSE(report.loops[1].hot);
  EXPECT_GT(report.loops[0].share_interval.high - report.loops[0].share_interval.low, 0.5)
      << "one sample does not tell much, whatever it stands for";
}

// Two described processes on node0: pid 10 is `first`, pid 11 is `second`.
Window TwoRanks(int32_t first, int32_t second) {
  Window window = EmptyWindow("node0", 1);
  window.ranks.resize(2);
  window.ranks[0].rank = first;
  window.ranks[0].pid = 10;
  window.ranks[1].rank = second;
  window.ranks[1].pid = 11;
  return window;
}

TEST(BuildReport, ChildrenOfARankArePartOfIt) {
  Window window = TwoRanks(0, 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 40, window);
  AddRow({0, 900, 900}, LoopAt(0x1000), 5, window);
  AddRow({0, 901, 901}, LoopAt(0x1000), 5, window);
  AddRow({1, 11, 11}, LoopAt(0x1000), 50, window);
  ProfileAggregate aggregate;
  aggregate.Add(window);
  const Report report = BuildReport({}, aggregate);
  ASSERT_EQ(report.ranks.size(), 2u);
  EXPECT_EQ(report.ranks[0].info.pid, 10);
  EXPECT_EQ(report.ranks[0].samples, 50u);
  EXPECT_DOUBLE_EQ(report.imbalance, 1.0);
  EXPECT_EQ(report.loops[0].thread_count, 4);
}

TEST(BuildReport, RepeatedRankNumbersAreToldApartByPid) {
  Window window = TwoRanks(0, 0);
  AddRow({0, 10, 10}, LoopAt(0x1000), 40, window);
  AddRow({0, 11, 11}, LoopAt(0x1000), 50, window);
  ProfileAggregate aggregate;
  aggregate.Add(window);
  const Report report = BuildReport({}, aggregate);
  ASSERT_EQ(report.ranks.size(), 2u);
  EXPECT_EQ(report.loops[0].worst_rank, "rank 0 on node0 (pid 11)");
}

TEST(BuildReport, RanksWithoutASampleCountAsZero) {
  const ReportRow loop = BuildReport({}, SmallJob()).loops[0];
  EXPECT_DOUBLE_EQ(loop.rank_seconds.min, 0);
  EXPECT_DOUBLE_EQ(loop.rank_seconds.median, 0.2);
  EXPECT_DOUBLE_EQ(loop.rank_seconds.max, 0.6);
  EXPECT_DOUBLE_EQ(loop.imbalance, 0.6 / (0.8 / 3));
  EXPECT_EQ(loop.worst_rank, "rank 0 on node0");
  EXPECT_EQ(loop.thread_count, 3);
  ASSERT_EQ(loop.ranks.size(), 2u);
  EXPECT_EQ(loop.ranks[1], (RankShare{"node0", 1, 20, 0.2, 20.0 / 35}));
  ASSERT_EQ(loop.threads.size(), 3u);
  EXPECT_EQ(loop.threads[0], (ThreadShare{{"node0", 0, 10, 10}, 40, 1}));
}

TEST(BuildReport, RankSummaries) {
  const Report report = BuildReport({}, SmallJob());
  ASSERT_EQ(report.ranks.size(), 3u);
  EXPECT_EQ(report.ranks[0].samples, 60u);
  EXPECT_EQ(report.ranks[0].threads, 2);
  EXPECT_DOUBLE_EQ(report.ranks[1].seconds, 0.35);
  EXPECT_DOUBLE_EQ(report.ranks[1].compute_seconds, 0.2) << "waiting is no computing";
  EXPECT_EQ(report.ranks[2].info.pid, 20);
  EXPECT_EQ(report.worst_rank, "rank 0 on node0");
  EXPECT_DOUBLE_EQ(report.imbalance, 0.6 / (0.85 / 3));
}

TEST(BuildReport, Ratios) {
  const Report report = BuildReport({}, SmallJob());
  EXPECT_DOUBLE_EQ(report.missing_ratio, 5.0 / 105);
  EXPECT_DOUBLE_EQ(report.overhead_ratio, 0.02);
  EXPECT_EQ(report.nodes.size(), 2u);
  EXPECT_TRUE(report.status.notices.empty());
}

TEST(BuildReport, ForeignSamplesAreNotMissing) {
  Window window = EmptyWindow("node0", 1);
  window.accounting.seen = 100;
  window.accounting.Drop(DropReason::kForeignProcess, 100);
  ProfileAggregate aggregate;
  aggregate.Add(window);
  EXPECT_DOUBLE_EQ(BuildReport({}, aggregate).missing_ratio, 0);
}

TEST(BuildReport, NothingMeasured) {
  const Report report = BuildReport({}, ProfileAggregate());
  EXPECT_EQ(report, Report{});
}

TEST(BuildReport, OneRankHasNoWorst) {
  Window window = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 4, window);
  ProfileAggregate aggregate;
  aggregate.Add(window);
  const Report report = BuildReport({}, aggregate);
  EXPECT_EQ(report.worst_rank, "");
  EXPECT_EQ(report.loops[0].worst_rank, "");
  EXPECT_DOUBLE_EQ(report.loops[0].imbalance, 1);
}

// Innermost loops of 50, 30 and 20 samples: 0.8 is reached exactly by two, so the third belongs.
TEST(BuildReport, HotSetAtTheBoundary) {
  Window window = EmptyWindow("node0", 1);
  for (uint64_t samples : {20u, 50u, 30u})
    AddRow({0, 10, 10}, LoopAt(0x1000 + samples * 16), samples, window);
  ProfileAggregate aggregate;
  aggregate.Add(window);
  ProfileStatus status;
  const auto hot = [&](double coverage, int32_t max_loops) {
    status.spec.hotspots.coverage_ratio = coverage;
    status.spec.hotspots.max_loops = max_loops;
    int count = 0;
    for (const ReportRow& row : BuildReport(status, aggregate).loops) count += row.hot ? 1 : 0;
    return count;
  };
  EXPECT_EQ(hot(0.79, 12), 2);
  EXPECT_EQ(hot(0.8, 12), 3);
  EXPECT_EQ(hot(0.8, 1), 1);
}

TEST(BuildReport, LimitsAreSaidAndTotalsStay) {
  const ProfileAggregate aggregate = SmallJob();
  ReportLimits limits;
  limits.rows = 0;
  Report report = BuildReport({}, aggregate, limits);
  EXPECT_TRUE(report.loops.empty());
  EXPECT_EQ(report.status.notices.size(), 1u);
  EXPECT_EQ(report.category_samples[static_cast<size_t>(Category::kLoop)], 80u);
  limits = {};
  limits.ranks_per_row = 1;
  limits.threads_per_row = 2;
  report = BuildReport({}, aggregate, limits);
  ASSERT_EQ(report.loops[0].ranks.size(), 1u);
  EXPECT_EQ(report.loops[0].ranks[0].rank, 0);
  EXPECT_EQ(report.loops[0].threads.size(), 2u);
  EXPECT_EQ(report.loops[0].thread_count, 3);
  EXPECT_DOUBLE_EQ(report.loops[0].rank_seconds.max, 0.6);
}

TEST(BuildReport, StacksPastTheLimitKeepTheRanksSum) {
  Window window = EmptyWindow("node0", 1);
  window.paths.frame_names = {"main", "a", "b"};
  window.paths.stacks = {{0, {0, 1}, 5}, {0, {0, 2}, 3}, {1, {0}, 2}, {0, {0}, 1}};
  ProfileAggregate aggregate;
  aggregate.Add(window);
  ReportLimits limits;
  limits.stacks = 1;
  const Report report = BuildReport({}, aggregate, limits);
  ASSERT_EQ(report.stacks.size(), 3u);
  EXPECT_EQ(report.stacks[0], (ReportStack{0, {"main", "a"}, 5}));
  EXPECT_EQ(report.stacks[1], (ReportStack{0, {"(other)"}, 4}));
  EXPECT_EQ(report.stacks[2], (ReportStack{1, {"(other)"}, 2}));
}

TEST(TopLoops, AgreeWithTheReport) {
  const ProfileAggregate aggregate = SmallJob();
  EXPECT_TRUE(TopLoops(aggregate, 0).empty());
  const std::vector<ReportRow> top = TopLoops(aggregate, 5);
  const ReportRow full = BuildReport({}, aggregate).loops[0];
  ASSERT_EQ(top.size(), 1u) << "waiting loops are no hot loops";
  EXPECT_EQ(top[0].id, full.id);
  EXPECT_EQ(top[0].share_interval, full.share_interval);
  EXPECT_DOUBLE_EQ(top[0].inclusive_share, full.inclusive_share);
  EXPECT_TRUE(top[0].ranks.empty());
}

// A rank whose second thread spins while the first computes alone: half of the CPU time, six sevenths of the elapsed time.
TEST(BuildReport, WallSharesDecideWhereElapsedTimeIsDivided) {
  Window window = EmptyWindow("node0", 1);
  AddRow({0, 10, 10}, LoopAt(0x1000), 40, window);
  AddRow({0, 10, 10}, LoopAt(0x2000), 30, window);
  AddRow({0, 10, 11}, LoopAt(0x2000), 30, window);
  AddRow({0, 10, 11}, Waiting(), 60, window);
  window.ranks.resize(1);
  window.ranks[0].pid = 10;
  window.rank_times = {{0, 10, 1'000'000'000, 5'000'000}};
  window.rows[0].wall_ns = 600'000'000;
  window.rows[1].wall_ns = window.rows[2].wall_ns = 150'000'000;
  ProfileAggregate aggregate;
  aggregate.Add(window);
  const Report report = BuildReport({}, aggregate);
  ASSERT_TRUE(report.time.wall.has_value());
  EXPECT_EQ(report.time.basis(), ShareBasis::kWall);
  const WallTotals& wall = *report.time.wall;
  EXPECT_DOUBLE_EQ(wall.category_share[static_cast<size_t>(Category::kLoop)], 0.9);
  EXPECT_DOUBLE_EQ(wall.waiting_share, 0.1);
  EXPECT_EQ(
      std::accumulate(wall.category_share.begin(), wall.category_share.end(), wall.waiting_share),
      1);
  EXPECT_DOUBLE_EQ(wall.elapsed_seconds, 1);
  EXPECT_DOUBLE_EQ(wall.cpu_wait_seconds, 0.005);
  ASSERT_EQ(report.loops.size(), 2u);
  EXPECT_EQ(report.loops[0].id, LocationId(LoopAt(0x1000))) << "though the other has more CPU time";
  EXPECT_DOUBLE_EQ(report.loops[0].wall->share, 0.6);
  EXPECT_LE(report.loops[0].wall->interval.low, 0.6);
  EXPECT_GE(report.loops[0].wall->interval.high, 0.6);
  EXPECT_DOUBLE_EQ(report.loops[0].share, 0.25);
  EXPECT_DOUBLE_EQ(report.loops[0].ranks[0].wall_share_of_rank, 0.6);
  EXPECT_DOUBLE_EQ(report.ranks[0].elapsed_seconds, 1);
  EXPECT_DOUBLE_EQ(report.ranks[0].compute_wall_seconds, 0.9);
  EXPECT_DOUBLE_EQ(report.ranks[0].cpu_wait_seconds, 0.005);
}

// A helper that lived for a moment is no rank with little to do.
TEST(BuildReport, ShortLivedProcessesAreNotComparedWithTheRanks) {
  const auto job = [](uint64_t helper_ns) {
    Window window = EmptyWindow("node0", 1);
    AddRow({0, 10, 10}, LoopAt(0x1000), 40, window);
    AddRow({1, 11, 11}, LoopAt(0x1000), 60, window);
    AddRow({0, 12, 12}, LoopAt(0x1000), 1, window);
    window.ranks.resize(3);
    for (int i = 0; i < 3; ++i) {
      window.ranks[static_cast<size_t>(i)].rank = i % 2;
      window.ranks[static_cast<size_t>(i)].pid = 10 + i;
    }
    window.rank_times = {
        {0, 10, 1'000'000'000, 0}, {1, 11, 1'000'000'000, 0}, {0, 12, helper_ns, 0}};
    window.rows[0].wall_ns = 400'000'000;
    window.rows[1].wall_ns = 600'000'000;
    window.rows[2].wall_ns = std::min<uint64_t>(helper_ns, 10'000'000);
    ProfileAggregate aggregate;
    aggregate.Add(window);
    return BuildReport({}, aggregate);
  };
  const Report report = job(50'000'000);
  ASSERT_EQ(report.ranks.size(), 3u) << "it is listed all the same";
  EXPECT_DOUBLE_EQ(report.imbalance, 60 / 50.0);
  EXPECT_EQ(report.worst_rank, "rank 1 on node0");
  EXPECT_DOUBLE_EQ(report.loops[0].imbalance, 60 / 50.0);
  EXPECT_DOUBLE_EQ(report.loops[0].rank_seconds.min, 0.4);
  EXPECT_EQ(report.loops[0].ranks.size(), 3u);
  const Report longer = job(100'000'000);
  EXPECT_DOUBLE_EQ(longer.imbalance, 60 / (101 / 3.0)) << "a tenth of the time is a rank";
}

TEST(BuildReport, WithoutElapsedTimeNothingIsSaidOfIt) {
  const Report report = BuildReport({}, SmallJob());
  EXPECT_FALSE(report.time.wall.has_value());
  EXPECT_EQ(report.time.basis(), ShareBasis::kCpu);
  for (const ReportRow& row : report.loops) EXPECT_FALSE(row.wall.has_value());
}

}  // namespace
}  // namespace perfd::daemon
