// What must hold for every report, over random jobs.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "core/wire/wire.h"
#include "daemon/report/report_builder.h"
#include "tests/unit/daemon/aggregate/random_windows.h"

namespace perfd::daemon {
namespace {

void CheckRow(const ReportRow& row, size_t ranks) {
  EXPECT_LE(row.share_interval.low, row.share);
  EXPECT_GE(row.share_interval.high, row.share);
  EXPECT_GE(row.inclusive_share, row.share);
  EXPECT_LE(row.inclusive_share, 1);
  EXPECT_LE(row.rank_seconds.min, row.rank_seconds.median);
  EXPECT_LE(row.rank_seconds.median, row.rank_seconds.max);
  EXPECT_GE(row.imbalance, 1);
  EXPECT_LE(row.imbalance, static_cast<double>(ranks) + 1e-9);
  uint64_t by_rank = 0;
  for (const RankShare& rank : row.ranks) by_rank += rank.samples;
  uint64_t by_thread = 0;
  for (const ThreadShare& thread : row.threads) by_thread += thread.samples;
  EXPECT_EQ(by_rank, row.samples);
  EXPECT_EQ(by_thread, row.samples);
  EXPECT_EQ(static_cast<size_t>(row.thread_count), row.threads.size());
}

constexpr double kRounding = 1e-12;

double WithCalled(const ReportRow& row) {
  return row.wall.has_value() ? row.wall->share + row.wall->called.share
                              : row.share + row.called.share;
}

void CheckReport(const Report& report, uint64_t samples) {
  uint64_t listed = 0;
  double shares = 0;
  for (const auto* table : {&report.loops, &report.waiting, &report.functions}) {
    EXPECT_TRUE(
        std::is_sorted(table->begin(), table->end(), [](const ReportRow& a, const ReportRow& b) {
          return WithCalled(a) > WithCalled(b) + kRounding;
        }));
    for (const ReportRow& row : *table) {
      CheckRow(row, report.ranks.size());
      listed += row.samples;
      shares += row.share;
    }
  }
  EXPECT_EQ(listed, samples);
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_EQ(std::accumulate(report.category_share.begin(), report.category_share.end(), 0.0), 1.0);
  EXPECT_EQ(
      std::accumulate(report.category_samples.begin(), report.category_samples.end(), uint64_t{0}),
      samples);
  if (report.time.wall.has_value()) {
    const WallTotals& wall = *report.time.wall;
    EXPECT_EQ(
        std::accumulate(wall.category_share.begin(), wall.category_share.end(), wall.waiting_share),
        1.0);
  }
  EXPECT_LE(report.time.waiting_share,
            report.category_share[static_cast<size_t>(Category::kLibrary)] + 1e-12);
  uint64_t by_rank = 0;
  for (const RankSummary& rank : report.ranks) {
    by_rank += rank.samples;
    EXPECT_LE(rank.compute_seconds, rank.seconds);
  }
  EXPECT_EQ(by_rank, samples);
  const MemoryReport& memory = report.findings.memory;
  uint64_t accesses = 0;
  for (const MemoryPlace& place : memory.places) {
    accesses += place.figures.profile.all.samples;
    uint64_t of_ranks = 0;
    for (const RankMemory& rank : place.ranks) of_ranks += rank.all.samples;
    EXPECT_EQ(of_ranks, place.figures.profile.all.samples);
  }
  EXPECT_EQ(accesses, memory.job.profile.all.samples) << "nothing is counted twice, or lost";
  EXPECT_GE(report.missing_ratio, 0);
  EXPECT_LE(report.missing_ratio, 1);
}

TEST(ReportInvariants, HoldForRandomJobs) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    ProfileAggregate aggregate;
    for (const Window& window : RandomWindows(seed, 1 + static_cast<int>(seed) / 2))
      aggregate.Add(window);
    if (aggregate.totals().samples == 0) continue;
    SCOPED_TRACE(seed);
    CheckReport(BuildReport({}, aggregate), aggregate.totals().samples);
  }
}

TEST(ReportInvariants, EqualAggregatesGiveEqualReports) {
  std::vector<Window> windows = RandomWindows(77, 30);
  ProfileAggregate forward;
  for (const Window& window : windows) forward.Add(window);
  std::mt19937_64 random(1);
  std::shuffle(windows.begin(), windows.end(), random);
  ProfileAggregate shuffled;
  for (const Window& window : windows) shuffled.Add(window);
  EXPECT_EQ(BuildReport({}, forward), BuildReport({}, shuffled));
}

TEST(ReportInvariants, EveryReportPassesTheWire) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    ProfileAggregate aggregate;
    for (const Window& window : RandomWindows(seed, 20)) aggregate.Add(window);
    const Report report = BuildReport({}, aggregate);
    const auto back = wire::FromProto(wire::ToProto(report));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, report);
  }
}

}  // namespace
}  // namespace perfd::daemon
