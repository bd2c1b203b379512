#include "agent/discover/numbering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perfd::agent {
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

std::vector<RankInfo> Number(const std::vector<Candidate>& candidates) {
  GivenNumbers given;
  return NumberRanks(candidates, "n1", &given);
}

std::vector<int32_t> Pids(const std::vector<Candidate>& candidates) {
  std::vector<int32_t> pids;
  for (const Candidate& c : candidates) pids.push_back(c.pid);
  return pids;
}

TEST(RetainPrograms, DropsTheShellAroundARank) {
  EXPECT_THAT(Pids(RetainPrograms({Make(10, "/bin/sh", 0), Make(11, "/home/a/app", 0),
                                   Make(12, "/bin/numactl", 1), Make(13, "/home/a/app", 1)})),
              ElementsAre(11, 13));
}

TEST(RetainPrograms, KeepsAShellThatIsAllThereIs) {
  EXPECT_THAT(Pids(RetainPrograms({Make(10, "/bin/bash", 0), Make(11, "/home/a/app", 1)})),
              ElementsAre(10, 11));
}

TEST(RetainPrograms, DropsLaunchersAlwaysAndTheBatchShellBesideARunningProgram) {
  EXPECT_THAT(Pids(RetainPrograms({Make(8, "/bin/bash", 0, RankSource::kSlurm),
                                   Make(9, "/usr/bin/mpirun", 0, RankSource::kSlurm),
                                   Make(10, "/home/a/app", 0)})),
              ElementsAre(10));
  EXPECT_TRUE(RetainPrograms({Make(9, "/usr/bin/orterun", 0)}).empty());
}

TEST(RetainPrograms, KeepsTheHelpersOfARank) {
  EXPECT_THAT(Pids(RetainPrograms({Make(10, "/home/a/app", 0), Make(11, "/home/a/helper", 0)})),
              ElementsAre(10, 11));
}

TEST(NumberRanks, SortsByRankThenPid) {
  const auto ranks = Number({Make(30, "/a", 1), Make(20, "/a", 0), Make(10, "/a", 1)});
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
  const auto alone = Number({x, y});
  EXPECT_EQ(alone[0].pid, 40);
  EXPECT_EQ(alone[0].rank, 0);
  EXPECT_EQ(alone[0].job_id, "pid-40");
  EXPECT_EQ(alone[0].world_size, 2);
  EXPECT_EQ(alone[1].rank, 1);
  const auto mixed = Number({x, Make(60, "/a", 4)});
  EXPECT_EQ(mixed[0].pid, 60);
  EXPECT_EQ(mixed[1].rank, 5);
  EXPECT_EQ(mixed[1].world_size, 1);
}

TEST(NumberRanks, ANumberOnceGivenStaysAndIsNotGivenAgain) {
  GivenNumbers given;
  const auto single = [](int32_t pid) { return Make(pid, "/x", 0, RankSource::kNone); };
  EXPECT_EQ(NumberRanks({single(100), single(200)}, "n", &given)[1].rank, 1);
  const auto later = NumberRanks({single(200), single(300), single(50)}, "n", &given);
  EXPECT_EQ(later[0].pid, 200);
  EXPECT_EQ(later[0].rank, 1);
  EXPECT_EQ(later[1].pid, 50);
  EXPECT_EQ(later[1].rank, 2);
  EXPECT_EQ(later[2].rank, 3);
  Candidate reused = single(200);
  reused.start_ticks = 9;
  EXPECT_EQ(NumberRanks({reused}, "n", &given)[0].rank, 4) << "another process under this pid";
}

TEST(NumberRanks, WhereNumbersAreUsedAgainTheSmallestThatNobodyHas) {
  GivenNumbers given;
  given.reuse = true;
  const auto single = [](int32_t pid) { return Make(pid, "/x", 0, RankSource::kNone); };
  const auto rank_of = [&](const std::vector<Candidate>& candidates, int32_t pid) {
    for (const RankInfo& info : NumberRanks(candidates, "n", &given))
      if (info.pid == pid) return info.rank;
    return -1;
  };
  EXPECT_EQ(rank_of({single(100), single(200), single(300)}, 300), 2);
  EXPECT_EQ(rank_of({single(100), single(300), single(50)}, 50), 3)
      << "200 was not seen, but lives";
  given.by_process.erase({200, 0});
  EXPECT_EQ(rank_of({single(100), single(300), single(400)}, 400), 1);
  EXPECT_EQ(rank_of({single(300)}, 300), 2) << "kept";
  Candidate reused = single(100);
  reused.start_ticks = 9;
  EXPECT_EQ(rank_of({reused}, 100), 0) << "another process under this pid: the first has ended";
  EXPECT_EQ(rank_of({Make(300, "/x", 0), single(500)}, 500), 2) << "300 is an MPI rank now";
  EXPECT_EQ(rank_of({Make(600, "/x", 6), single(700)}, 700), 7) << "after the largest of MPI";
}

TEST(DropWrappers, AlsoWhereTheyAreAllThereIs) {
  std::vector<Candidate> candidates = {Make(10, "/bin/bash", 0), Make(11, "/bin/time", 1)};
  DropWrappers(&candidates);
  EXPECT_TRUE(candidates.empty());
}

}  // namespace
}  // namespace perfd::agent
