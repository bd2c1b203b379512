#include "agent/discover/numbering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perfd {
namespace {

using ::testing::ElementsAre;

Candidate Make(int32_t pid, const std::string& executable, int32_t rank,
               RankSource source = RankSource::kPmix) {
  Candidate c;
  c.pid = pid;
  c.executable = executable;
  c.has_executable = true;
  c.environment.rank = rank;
  c.environment.source = source;
  c.environment.job_id = "1";
  c.environment.launch = source == RankSource::kSlurm ? "batch" : "ns";
  c.environment.world_size = 2;
  return c;
}

std::vector<int32_t> Pids(const std::vector<Candidate>& candidates) {
  std::vector<int32_t> pids;
  for (const Candidate& c : candidates) pids.push_back(c.pid);
  return pids;
}

TEST(KeepPrograms, DropsTheShellAroundARank) {
  EXPECT_THAT(Pids(KeepPrograms({Make(10, "/bin/sh", 0), Make(11, "/home/a/app", 0),
                                 Make(12, "/bin/numactl", 1), Make(13, "/home/a/app", 1)})),
              ElementsAre(11, 13));
}

TEST(KeepPrograms, KeepsAShellThatIsAllThereIs) {
  EXPECT_THAT(Pids(KeepPrograms({Make(10, "/bin/bash", 0), Make(11, "/home/a/app", 1)})),
              ElementsAre(10, 11));
}

TEST(KeepPrograms, DropsLaunchersAlwaysAndTheBatchShellBesideARunningProgram) {
  EXPECT_THAT(Pids(KeepPrograms({Make(8, "/bin/bash", 0, RankSource::kSlurm),
                                 Make(9, "/usr/bin/mpirun", 0, RankSource::kSlurm),
                                 Make(10, "/home/a/app", 0)})),
              ElementsAre(10));
  EXPECT_TRUE(KeepPrograms({Make(9, "/usr/bin/orterun", 0)}).empty());
}

TEST(KeepPrograms, KeepsTheHelpersOfARank) {
  EXPECT_THAT(Pids(KeepPrograms({Make(10, "/home/a/app", 0), Make(11, "/home/a/helper", 0)})),
              ElementsAre(10, 11));
}

TEST(NumberRanks, SortsByRankThenPid) {
  const auto ranks = NumberRanks({Make(30, "/a", 1), Make(20, "/a", 0), Make(10, "/a", 1)}, "n1");
  ASSERT_EQ(ranks.size(), 3u);
  EXPECT_EQ(ranks[0].pid, 20);
  EXPECT_EQ(ranks[1].pid, 10);
  EXPECT_EQ(ranks[2].pid, 30);
  EXPECT_EQ(ranks[0].node, "n1");
  EXPECT_EQ(ranks[0].world_size, 2);
  EXPECT_EQ(ranks[0].command, "a");
}

TEST(NumberRanks, NumbersTheRestAfterTheRanksInPidOrder) {
  Candidate x = Make(50, "/x", 0, RankSource::kNone);
  Candidate y = Make(40, "/x", 0, RankSource::kNone);
  x.environment.job_id = y.environment.job_id = "";
  const auto alone = NumberRanks({x, y}, "n");
  EXPECT_EQ(alone[0].pid, 40);
  EXPECT_EQ(alone[0].rank, 0);
  EXPECT_EQ(alone[0].job_id, "pid-40");
  EXPECT_EQ(alone[0].world_size, 2);
  EXPECT_EQ(alone[1].rank, 1);
  const auto mixed = NumberRanks({x, Make(60, "/a", 4)}, "n");
  EXPECT_EQ(mixed[0].pid, 60);
  EXPECT_EQ(mixed[1].rank, 5);
  EXPECT_EQ(mixed[1].world_size, 1);
}

}  // namespace
}  // namespace perfd
