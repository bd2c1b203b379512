#include "agent/discover/rank_finder.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/procfs/fake_proc.h"

namespace perfd {
namespace {

using ::testing::HasSubstr;

const Requester kAlice{.uid = 4000001, .name = "alice", .privileged = false};
const Requester kRoot{.uid = 0, .name = "root", .privileged = true};

class RankFinderTest : public testing::Test {
 protected:
  void Add(FakeProcess process) {
    if (process.uid == 1000) process.uid = kAlice.uid;
    proc_.AddProcess(process);
    if (!process.executable.empty()) {
      proc_.SetExecutableHead(process.pid, ELFCLASS64, EM_X86_64);
    }
  }
  void AddRank(int32_t pid, int32_t rank, const std::string& executable = "/opt/lulesh2.0") {
    Add({.pid = pid,
         .executable = executable,
         .arguments = {executable},
         .environment = {{"PMIX_RANK", absl::StrCat(rank)},
                         {"PMIX_NAMESPACE", "77"},
                         {"OMPI_COMM_WORLD_SIZE", "4"}}});
  }
  absl::StatusOr<Discovery> Find(const TargetSpec& target, const Requester& who = kAlice,
                                 const std::vector<RankRange>& ranks = {}) {
    return RankFinder(ProcFs(proc_.root()), "node1").Find(target, ranks, who);
  }
  static TargetSpec Command(const std::string& name, const std::string& user = "") {
    TargetSpec target;
    target.command = name;
    target.user = user;
    return target;
  }
  static TargetSpec Pids(const std::vector<int32_t>& pids) {
    TargetSpec target;
    target.pids = pids;
    return target;
  }

  FakeProc proc_;
};

TEST_F(RankFinderTest, FindsRanksByCommand) {
  AddRank(101, 1);
  AddRank(100, 0);
  AddRank(99, 0, "/bin/sh");
  Add({.pid = 98,
       .executable = "/usr/bin/orterun",
       .arguments = {"mpirun", "-n", "2", "lulesh2.0"}});
  const auto found = Find(Command("lulesh2.0"));
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->ranks.size(), 2u);
  EXPECT_EQ(found->ranks[0].pid, 100);
  EXPECT_EQ(found->ranks[1].rank, 1);
  EXPECT_EQ(found->ranks[1].world_size, 4);
  EXPECT_EQ(found->ranks[1].job_id, "77");
  EXPECT_EQ(found->ranks[1].source, RankSource::kPmix);
  EXPECT_EQ(found->ranks[1].start_ticks, 100u);
  EXPECT_TRUE(found->rejected.empty());
  EXPECT_EQ(found->cgroup, "");
}

TEST_F(RankFinderTest, MatchesArgumentZeroAndScripts) {
  Add({.pid = 1, .executable = "/opt/v2/real", .arguments = {"/opt/alias", "x"}});
  Add({.pid = 2,
       .executable = "/usr/bin/python3.11",
       .arguments = {"python3", "-u", "/h/x.py", "y.py"}});
  Add({.pid = 3, .executable = "/usr/bin/python3.11", .arguments = {"python3", "-c", "x.py"}});
  Add({.pid = 4, .executable = "/bin/cat", .arguments = {"cat", "x.py"}});
  EXPECT_EQ(Find(Command("alias"))->ranks.at(0).pid, 1);
  EXPECT_EQ(Find(Command("real"))->ranks.at(0).pid, 1);
  const auto script = Find(Command("x.py"));
  ASSERT_EQ(script->ranks.size(), 1u);
  EXPECT_EQ(script->ranks[0].pid, 2);
  EXPECT_TRUE(absl::IsNotFound(Find(Command("y.py")).status()));
}

TEST_F(RankFinderTest, LeavesOutUnselectedRanksWithoutAWord) {
  for (int i = 0; i < 4; ++i) AddRank(100 + i, i);
  const auto found = Find(Command("lulesh2.0"), kAlice, {{1, 2}});
  ASSERT_EQ(found->ranks.size(), 2u);
  EXPECT_EQ(found->ranks[0].rank, 1);
  EXPECT_EQ(found->ranks[1].rank, 2);
  EXPECT_TRUE(found->rejected.empty());
}

TEST_F(RankFinderTest, RefusesProcessesOfOthers) {
  Add({.pid = 5, .uid = 4000002});
  const auto by_pid = Find(Pids({5}));
  ASSERT_TRUE(by_pid.ok());
  EXPECT_TRUE(by_pid->ranks.empty());
  ASSERT_EQ(by_pid->rejected.size(), 1u);
  EXPECT_TRUE(absl::IsPermissionDenied(by_pid->rejected[0].reason));
  EXPECT_THAT(std::string(by_pid->rejected[0].reason.message()), HasSubstr("uid 4000002"));
  EXPECT_EQ(Find(Command("app"))->rejected.size(), 1u);
  EXPECT_EQ(Find(Pids({5}), kRoot)->ranks.size(), 1u) << "root may";
}

TEST_F(RankFinderTest, ACommandMeansTheRequestersOwnUnlessAUserIsNamed) {
  Add({.pid = 5, .uid = 4000002});
  Add({.pid = 6, .uid = 0});
  const auto own = Find(Command("app"), kRoot);
  ASSERT_EQ(own->ranks.size(), 1u);
  EXPECT_EQ(own->ranks[0].pid, 6);
  EXPECT_TRUE(own->rejected.empty()) << "others' are noise once one's own are found";
  const auto named = Find(Command("app", "4000002"), kRoot);
  ASSERT_EQ(named->ranks.size(), 1u);
  EXPECT_EQ(named->ranks[0].pid, 5);
  EXPECT_TRUE(absl::IsInvalidArgument(Find(Command("app", "no such user"), kRoot).status()));
  EXPECT_TRUE(Find(Command("app", "4000002"), kAlice)->ranks.empty());
}

TEST_F(RankFinderTest, SaysWhyAProcessCannotBeUsed) {
  Add({.pid = 1});
  proc_.SetExecutableHead(1, ELFCLASS32, EM_386);
  Add({.pid = 2});
  proc_.SetExecutableHead(2, ELFCLASS64, EM_AARCH64);
  Add({.pid = 3, .executable = "", .arguments = {}});
  Add({.pid = 4, .executable = "", .arguments = {}, .state = 'Z'});
  Add({.pid = 5});
  proc_.SetExecutableHead(5, ELFCLASS32, EM_X86_64);
  const auto found = Find(Pids({1, 2, 3, 4, 5, 6}));
  ASSERT_EQ(found->rejected.size(), 6u);
  const auto reason = [&](size_t i) { return found->rejected[i].reason; };
  EXPECT_TRUE(absl::IsUnimplemented(reason(0)));
  EXPECT_THAT(std::string(reason(0).message()), HasSubstr("32-bit"));
  EXPECT_TRUE(absl::IsUnimplemented(reason(1)));
  EXPECT_THAT(std::string(reason(1).message()), HasSubstr("another machine"));
  EXPECT_TRUE(absl::IsFailedPrecondition(reason(2)));
  EXPECT_THAT(std::string(reason(2).message()), HasSubstr("kernel thread"));
  EXPECT_THAT(std::string(reason(3).message()), HasSubstr("zombie"));
  EXPECT_THAT(std::string(reason(4).message()), HasSubstr("32-bit")) << "x32";
  EXPECT_TRUE(absl::IsNotFound(reason(5)));
}

TEST_F(RankFinderTest, FindsASlurmJobByEnvironmentAndByCgroup) {
  Add({.pid = 1,
       .environment = {{"SLURM_JOB_ID", "4711"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}});
  Add({.pid = 2, .cgroup = "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n"});
  Add({.pid = 3, .environment = {{"SLURM_JOB_ID", "47"}}, .cgroup = "0::/job_47110\n"});
  Add({.pid = 4,
       .uid = 0,
       .executable = "/usr/sbin/slurmstepd",
       .cgroup = "0::/system.slice/slurmstepd.scope/job_4711/step_0/slurm\n"});
  TargetSpec target;
  target.slurm_job = 4711;
  const auto found = Find(target);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->ranks.size(), 2u);
  EXPECT_EQ(found->ranks[0].pid, 1);
  EXPECT_EQ(found->ranks[0].rank, 1);
  EXPECT_EQ(found->ranks[1].pid, 2);
  EXPECT_EQ(found->ranks[1].rank, 2);
  EXPECT_EQ(found->ranks[1].job_id, "4711");
  EXPECT_TRUE(found->rejected.empty());
}

TEST_F(RankFinderTest, ATargetIsExactlyOneThing) {
  EXPECT_TRUE(absl::IsInvalidArgument(Find({}).status()));
  TargetSpec two = Command("x");
  two.pids = {1};
  EXPECT_TRUE(absl::IsInvalidArgument(Find(two).status()));
}

TEST_F(RankFinderTest, APidNamedTwiceIsOneProcess) {
  Add({.pid = 7});
  EXPECT_EQ(Find(Pids({7, 7}))->ranks.size(), 1u);
}

}  // namespace
}  // namespace perfd
