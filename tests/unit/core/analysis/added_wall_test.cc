#include "core/analysis/added_wall.h"

#include <gtest/gtest.h>

namespace perfd {
namespace {

Report TwoNodesFourRanks() {
  Report report;
  report.nodes = {{"a", 1, 10'000, {}}, {"b", 1, 8'000, {}}};
  report.ranks.resize(4);
  report.overhead.kernel_sampling_ns = 400;
  report.overhead.agent_cpu_ns = 90;
  report.overhead.lost_to_agent_ns = 60;
  report.findings.injection.added_wall_ns = 70;
  return report;
}

TEST(AddedWall, RanksAndNodesAreHeldUpSideBySide) {
  const AddedWall wall = AddedWallOf(TwoNodesFourRanks());
  EXPECT_EQ(wall.sampling_ns, 100);
  EXPECT_EQ(wall.agents_ns, 33) << "18,000 of 20,000 ns of two nodes were covered: 1.8 at a time";
  EXPECT_EQ(wall.injection_ns, 70);
  EXPECT_DOUBLE_EQ(wall.ratio, 0.0203);
}

// Two of four ranks lived all the time, two for a tenth of it: 2.2 at a time.
TEST(AddedWall, RanksThatEndedLongBeforeDoNotThinOutTheOthers) {
  Report report = TwoNodesFourRanks();
  report.overhead.rank_wall_ns = 22'000;
  EXPECT_EQ(AddedWallOf(report).sampling_ns, 181);
}

TEST(AddedWall, NeverLessThanIfAllHadLivedAllTheTime) {
  Report report = TwoNodesFourRanks();
  report.overhead.rank_wall_ns = 40'000;
  EXPECT_EQ(AddedWallOf(report).sampling_ns, 100);
  report.overhead.rank_wall_ns = UINT64_MAX;  // a lie
  EXPECT_EQ(AddedWallOf(report).sampling_ns, 100);
}

TEST(AddedWall, NeverMoreThanAllOfItOneAfterTheOther) {
  Report report = TwoNodesFourRanks();
  report.overhead.rank_wall_ns = 10;  // one rank, for a moment
  EXPECT_EQ(AddedWallOf(report).sampling_ns, 400);
}

TEST(AddedWall, NothingCoveredHasNoRatio) {
  EXPECT_EQ(AddedWallOf({}).TotalNs(), 0);
  EXPECT_EQ(AddedWallOf({}).ratio, 0);
}

TEST(AddedWall, ForeignFiguresDoNotOverflow) {
  Report report = TwoNodesFourRanks();
  report.ranks.clear();
  report.nodes.clear();
  report.overhead.kernel_sampling_ns = UINT64_MAX;
  report.overhead.lost_to_agent_ns = UINT64_MAX;
  report.findings.injection.added_wall_ns = INT64_MAX;
  EXPECT_GT(AddedWallOf(report).TotalNs(), 0);
}

}  // namespace
}  // namespace perfd
