#include "core/page/page_cut.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/client/sample_report.h"

namespace perfd {
namespace {

ReportRow Row(size_t ranks, size_t threads) {
  ReportRow row;
  row.ranks.resize(ranks);
  row.threads.resize(threads);
  return row;
}

TEST(PageCutTest, AnOrdinaryReportIsWhole) {
  const Report report = SampleReport();
  const PageReport cut = CutForPage(report);
  EXPECT_EQ(cut.left_out, LeftOut{});
  EXPECT_EQ(cut.report.loops, report.loops);
  EXPECT_EQ(cut.report.ranks, report.ranks);
  EXPECT_EQ(cut.report.stacks, report.stacks);
  EXPECT_EQ(cut.report.findings.verdicts, report.findings.verdicts);
}

TEST(PageCutTest, NothingGoesAtTheLimitAndOneBeyondIt) {
  const PageLimits limits;
  Report report;
  report.loops = {Row(limits.lines, limits.lines)};
  report.functions.resize(limits.rows);
  report.ranks.resize(limits.ranks);
  report.stacks.resize(limits.stacks);
  report.status.notices.resize(limits.notices);
  LoopVerdict loop;
  loop.listings.resize(1);
  loop.listings[0].lines.resize(limits.instructions);
  report.findings.verdicts = {loop};
  EXPECT_EQ(CutForPage(report).left_out, LeftOut{});

  report.loops = {Row(limits.lines + 1, limits.lines + 1)};
  report.functions.resize(limits.rows + 1);
  report.ranks.resize(limits.ranks + 1);
  report.stacks.resize(limits.stacks + 1);
  report.status.notices.resize(limits.notices + 1);
  report.findings.verdicts[0].listings[0].lines.resize(limits.instructions + 1);
  const PageReport cut = CutForPage(report);
  EXPECT_EQ(cut.left_out, (LeftOut{1, 1, 2, 1, 1, 1}));
  EXPECT_EQ(cut.report.loops[0].ranks.size(), limits.lines);
  EXPECT_EQ(cut.report.loops[0].threads.size(), limits.lines);
  EXPECT_EQ(cut.report.functions.size(), limits.rows);
  EXPECT_EQ(cut.report.ranks.size(), limits.ranks);
  EXPECT_EQ(cut.report.stacks.size(), limits.stacks);
  EXPECT_EQ(cut.report.status.notices.size(), limits.notices);
  EXPECT_EQ(cut.report.findings.verdicts[0].listings[0].lines.size(), limits.instructions);
  EXPECT_EQ(CutForPage(cut.report).left_out, LeftOut{});
}

TEST(PageCutTest, RowsBeyondTheChartsKeepTheirFiguresOnly) {
  PageLimits limits;
  limits.charted_rows = 1;
  Report report;
  report.loops = {Row(2, 2), Row(2, 2)};
  report.loops[1].imbalance = 1.5;
  report.waiting = {Row(2, 2)};
  const PageReport cut = CutForPage(report, limits);
  EXPECT_EQ(cut.left_out, LeftOut{});
  EXPECT_EQ(cut.report.loops[0].threads.size(), 2u);
  EXPECT_TRUE(cut.report.loops[1].ranks.empty());
  EXPECT_EQ(cut.report.loops[1].imbalance, 1.5);
  EXPECT_TRUE(cut.report.waiting[0].threads.empty());
}

TEST(PageCutTest, PlacesOfMemoryCountWhatTheyLack) {
  PageLimits limits;
  limits.rows = 2;
  limits.charted_rows = 1;
  limits.references = 2;
  limits.lines = 3;
  Report report;
  MemoryReport& memory = report.findings.memory;
  memory.places.resize(3);
  for (MemoryPlace& place : memory.places) {
    place.references.resize(3);
    place.ranks.resize(4);
    place.references_left_out = 10;
  }
  memory.places_left_out = 5;
  const PageReport cut = CutForPage(report, limits);
  const MemoryReport& left = cut.report.findings.memory;
  EXPECT_EQ(left.places_left_out, 6u);
  ASSERT_EQ(left.places.size(), 2u);
  EXPECT_EQ(left.places[0].references.size(), 2u);
  EXPECT_EQ(left.places[0].references_left_out, 11u);
  EXPECT_EQ(left.places[0].ranks.size(), 3u);
  EXPECT_EQ(left.places[0].ranks_left_out, 1u);
  EXPECT_TRUE(left.places[1].references.empty());
  EXPECT_EQ(left.places[1].references_left_out, 13u);
  EXPECT_EQ(left.places[1].ranks_left_out, 4u);
  EXPECT_EQ(CutForPage(cut.report, limits).report.findings.memory, left);
}

TEST(PageCutTest, TheHeaviestCallPathsStayInTheirOrder) {
  PageLimits limits;
  limits.stacks = 3;
  Report report;
  for (const uint64_t samples : {5u, 1u, 9u, 5u, 2u, 7u})
    report.stacks.push_back({0, {"main"}, samples});
  const PageReport cut = CutForPage(report, limits);
  ASSERT_EQ(cut.report.stacks.size(), 3u);
  EXPECT_EQ(cut.report.stacks[0].samples, 5u);  // the first of two
  EXPECT_EQ(cut.report.stacks[1].samples, 9u);
  EXPECT_EQ(cut.report.stacks[2].samples, 7u);
  EXPECT_EQ(cut.left_out.stacks, 3u);
}

// Rank 1 was sampled seldom: its two paths are 5 s each, the twenty of rank 0 half a second each.
TEST(PageCutTest, CallPathsAreHeavyByTheirTimeWhichDoesNotChangeWhenOthersGo) {
  PageLimits limits;
  limits.stacks = 1;
  Report report;
  report.ranks.resize(2);
  report.ranks[1].info.rank = 1;
  for (RankSummary& rank : report.ranks) rank.seconds = 10;
  report.stacks = {{0, {"a"}, 8}, {0, {"b"}, 12}, {1, {"c"}, 1}, {1, {"d"}, 1}};
  const PageReport cut = CutForPage(report, limits);
  ASSERT_EQ(cut.report.stacks.size(), 1u);
  EXPECT_EQ(cut.report.stacks[0].frames, std::vector<std::string>{"b"});
  EXPECT_EQ(cut.stack_seconds, std::vector<double>{6});
  limits.stacks = 3;
  EXPECT_EQ(CutForPage(report, limits).stack_seconds, (std::vector<double>{6, 5, 5}));
}

}  // namespace
}  // namespace perfd
