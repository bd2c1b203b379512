#include "agent/discover/rank_finder.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/unit/procfs/fake_proc.h"

namespace perfd::agent {
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
    return finder().Find(target, ranks, who);
  }
  RankFinder finder() const {
    return RankFinder(ProcFs(proc_.root()), "node1", absl::ZeroDuration());
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

  struct FixedClock final : Clock {
    int64_t MonotonicNs() const override { return now_ns; }
    int64_t UnixNs() const override { return now_ns; }
    int64_t now_ns = 1;
  };

  FakeProc proc_;
  FixedClock clock_;
};

TEST_F(RankFinderTest, ShadowsOfRanksAreNoRanks) {
  AddRank(100, 0);
  Add({.pid = 101,
       .executable = "/home/alice/lulesh2.0",
       .arguments = {"./lulesh2.0"},
       .exit_signal = 0});
  const auto found = Find(Command("lulesh2.0"));
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->ranks.size(), 1u);
  EXPECT_EQ(found->ranks[0].pid, 100);
}

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

// A command is UTF-8; names of files need not be.
TEST_F(RankFinderTest, MatchesNamesAsTheyAreShown) {
  Add({.pid = 1, .executable = "/b\xe9ton/m\xe4in", .arguments = {"x"}});
  Add({.pid = 2,
       .executable = "/usr/bin/python3.11",
       .arguments = {"python3",
                     "/h/gr\xfc\xdf"
                     "e.py"}});
  Add({.pid = 3, .executable = "/h/W\xc3\xa4rme", .arguments = {"y"}});
  EXPECT_EQ(Find(Command("m?in"))->ranks.at(0).pid, 1);
  EXPECT_EQ(Find(Command("gr??e.py"))->ranks.at(0).pid, 2);
  EXPECT_EQ(Find(Command("W\xc3\xa4rme"))->ranks.at(0).pid, 3);
  EXPECT_TRUE(absl::IsNotFound(Find(Command("W??rme")).status()));
  EXPECT_TRUE(absl::IsNotFound(Find(Command("m??in")).status()));
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
  EXPECT_TRUE(absl::IsNotFound(Find(Command("app", "4000002"), kAlice).status()));
}

TEST_F(RankFinderTest, ACommandThatOnlyOthersRunIsNotFoundAndSaysSo) {
  Add({.pid = 5, .uid = 4000002});
  Add({.pid = 6, .uid = 4000002});
  Add({.pid = 7, .uid = 4000003});
  const absl::Status none = Find(Command("app")).status();
  EXPECT_TRUE(absl::IsNotFound(none)) << none;
  EXPECT_THAT(std::string(none.message()), HasSubstr("2 of uid 4000002, 1 of uid 4000003"));
  EXPECT_THAT(std::string(none.message()), HasSubstr("belong to others"));
}

TEST_F(RankFinderTest, WhereProcessesAreHiddenNothingIsSaidOfThoseOfOthers) {
  Add({.pid = 5, .uid = 4000002});
  const auto reason = [&](int32_t pid) {
    const auto found = Find(Pids({pid}));
    return found.ok() && found->rejected.size() == 1
               ? std::string(found->rejected[0].reason.message())
               : found.status().ToString();
  };
  for (const char* options : {"rw,hidepid=2", "rw,nosuid,hidepid=invisible,gid=7", "hidepid=1"}) {
    proc_.Write("mounts", absl::StrCat("proc /proc proc ", options, " 0 0\n"));
    EXPECT_EQ(Find(Command("app")).status().message(), "no process on node1 matches the target");
    EXPECT_EQ(reason(5), "process 5: there is none of uid 4000001");
    EXPECT_EQ(reason(6), "process 6: there is none of uid 4000001") << "nor is there one at all";
    EXPECT_THAT(std::string(Find(Command("app"), kRoot).status().message()),
                HasSubstr("1 of uid 4000002"))
        << options;
  }
  proc_.Write("mounts", "proc /proc proc rw,hidepid=0 0 0\nproc /jail/proc proc hidepid=2 0 0\n");
  EXPECT_THAT(reason(5), HasSubstr("belongs to uid 4000002"));
}

TEST_F(RankFinderTest, RefusesSetuidAndSetgidProgramsToAllButThePrivileged) {
  Add({.pid = 5, .effective_uid = 0});
  Add({.pid = 6, .effective_gid = 0});
  for (const TargetSpec& target : {Pids({5, 6}), Command("app")}) {
    const auto found = Find(target);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_TRUE(found->ranks.empty());
    ASSERT_EQ(found->rejected.size(), 2u);
    for (const RejectedProcess& process : found->rejected) {
      EXPECT_TRUE(absl::IsPermissionDenied(process.reason)) << process.reason;
    }
    EXPECT_THAT(std::string(found->rejected[0].reason.message()),
                HasSubstr("runs with the rights of root (setuid)"));
    EXPECT_THAT(std::string(found->rejected[1].reason.message()),
                HasSubstr("runs with the rights of group root (setgid)"));
  }
  EXPECT_EQ(Find(Pids({5, 6}), kRoot)->ranks.size(), 2u);
}

TEST_F(RankFinderTest, TwoJobsOfOneCommandAreNotMixed) {
  const auto add = [&](int32_t pid, const char* job) {
    Add({.pid = pid, .environment = {{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", job}}});
  };
  add(10, "77");
  add(20, "78");
  const absl::Status both = Find(Command("app")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(both)) << both;
  EXPECT_THAT(std::string(both.message()), HasSubstr("job 77 (pid 10), job 78 (pid 20)"));
  EXPECT_THAT(std::string(both.message()), HasSubstr("--pid or --slurm-job"));
  EXPECT_EQ(Find(Pids({10, 20}))->ranks.size(), 2u) << "named";
  EXPECT_EQ(Find(Pids({10, 20}))->job_ids, (std::vector<std::string>{"77", "78"}));
  proc_.Remove(20);
  ProcessScan scan(clock_);
  ASSERT_EQ(finder().Find(Command("app"), {}, kAlice, &scan)->ranks.size(), 1u);
  add(20, "78");
  const auto later = finder().Find(Command("app"), {}, kAlice, &scan);
  ASSERT_TRUE(later.ok()) << later.status();
  ASSERT_EQ(later->ranks.size(), 1u) << "the other job started later";
  EXPECT_EQ(later->ranks[0].pid, 10);
}

TEST_F(RankFinderTest, StepsOfOneSlurmJobMayCollideWithAWarning) {
  for (int step = 0; step < 2; ++step) {
    Add({.pid = 10 + step,
         .environment = {
             {"SLURM_JOB_ID", "9"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", absl::StrCat(step)}}});
  }
  TargetSpec target;
  target.slurm_job = 9;
  const auto found = Find(target);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->ranks.size(), 2u);
  ASSERT_EQ(found->warnings.size(), 1u);
  EXPECT_THAT(found->warnings[0], HasSubstr("several launches"));
}

TEST_F(RankFinderTest, NothingIsReadOfTheMemoryOfAStuckProcess) {
  Add({.pid = 5, .environment = {{"PMIX_RANK", "0"}}, .state = 'D'});
  Add({.pid = 6, .executable = "/bin/python3", .arguments = {"python3", "app"}, .state = 'D'});
  proc_.Write("5/environ", std::string(size_t{9} << 20, 'x'));  // reading it would be an error
  for (const TargetSpec& target : {Pids({5}), Command("app")}) {
    const auto found = Find(target);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_TRUE(found->ranks.empty());
    ASSERT_EQ(found->rejected.size(), 1u) << "whether python runs app is not known";
    EXPECT_TRUE(absl::IsUnavailable(found->rejected[0].reason)) << found->rejected[0].reason;
  }
  ProcessScan scan(clock_);
  EXPECT_TRUE(finder().Find(Command("app"), {}, kAlice, &scan)->ranks.empty());
  proc_.Remove(5);
  Add({.pid = 5});
  EXPECT_EQ(finder().Find(Command("app"), {}, kAlice, &scan)->ranks.size(), 1u) << "not remembered";
}

// Whose memory is read; of `silent` nobody gets an answer.
struct RecordingFiles final : SlowFiles {
  absl::StatusOr<std::string> Read(int32_t pid, const SlowRead& read) override {
    asked.insert(pid);
    if (pid != silent) return ReadSlowFile(read);
    return absl::UnavailableError(absl::StrCat("process ", pid, " does not answer"));
  }
  std::set<int32_t> asked;
  int32_t silent = 0;
};

TEST_F(RankFinderTest, OfProcessesOfOthersNothingIsReadThatCouldWaitForThem) {
  Add({.pid = 5, .uid = 4000002, .environment = {{"SLURM_JOB_ID", "9"}}});
  Add({.pid = 6, .uid = 4000002, .cgroup = "0::/job_9/step_0\n"});
  Add({.pid = 7, .environment = {{"SLURM_JOB_ID", "9"}}});
  TargetSpec job;
  job.slurm_job = 9;
  const std::vector<std::pair<TargetSpec, Requester>> all = {{Command("app"), kAlice},
                                                             {Pids({5, 6, 7}), kAlice},
                                                             {job, kAlice},
                                                             {Command("app", "4000001"), kRoot}};
  for (const auto& [target, requester] : all) {
    const auto files = std::make_shared<RecordingFiles>();
    const RankFinder finder(ProcFs(proc_.root(), files), "node1", absl::ZeroDuration());
    const auto found = finder.Find(target, {}, requester);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->ranks.size(), 1u);
    EXPECT_THAT(files->asked, testing::ElementsAre(7));
  }
}

TEST_F(RankFinderTest, WhoDoesNotAnswerIsNamedAndTheOthersAreFound) {
  Add({.pid = 5});
  Add({.pid = 6});
  const auto files = std::make_shared<RecordingFiles>();
  files->silent = 5;
  const RankFinder finder(ProcFs(proc_.root(), files), "node1", absl::ZeroDuration());
  TargetSpec job;
  job.slurm_job = 9;
  for (const TargetSpec& target : {Command("app"), Pids({5, 6})}) {
    const auto found = finder.Find(target, {}, kAlice);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->ranks.size(), 1u);
    EXPECT_EQ(found->ranks[0].pid, 6);
    ASSERT_EQ(found->rejected.size(), 1u);
    EXPECT_TRUE(absl::IsUnavailable(found->rejected[0].reason));
    EXPECT_THAT(std::string(found->rejected[0].reason.message()), HasSubstr("does not answer"));
  }
  Add({.pid = 5, .executable = "/bin/other", .arguments = {"other"}});
  const auto perhaps = finder.Find(Command("app"), {}, kAlice);
  ASSERT_TRUE(perhaps.ok()) << perhaps.status();
  ASSERT_EQ(perhaps->warnings.size(), 1u) << "its arguments are not known";
  EXPECT_THAT(perhaps->warnings[0], HasSubstr("1 processes that may be meant do not answer"));
  EXPECT_THAT(perhaps->warnings[0], HasSubstr("left out: 5"));
  EXPECT_TRUE(perhaps->rejected.empty());
  for (const TargetSpec& target : {Command("none"), job}) {
    const absl::Status none = finder.Find(target, {}, kAlice).status();
    EXPECT_TRUE(absl::IsNotFound(none));
    EXPECT_THAT(std::string(none.message()), HasSubstr("left out: 5"));
  }
}

TEST_F(RankFinderTest, AScanJudgesAProcessAgainWhenItHasChangedOrMuchLater) {
  Add({.pid = 5, .executable = "/bin/other", .arguments = {"other"}});
  ProcessScan scan(clock_);
  const auto find = [&] { return finder().Find(Command("app"), {}, kAlice, &scan); };
  EXPECT_TRUE(absl::IsNotFound(find().status()));
  // The same name in stat: as after an exec of a program of that name.
  Add({.pid = 5, .executable = "/bin/app", .arguments = {"other"}});
  clock_.now_ns += ProcessScan::kHoldNs - 1;
  EXPECT_TRUE(absl::IsNotFound(find().status())) << "known not to match";
  clock_.now_ns += ProcessScan::kHoldNs + 1;
  EXPECT_EQ(find()->ranks.size(), 1u);
  Add({.pid = 6, .executable = "/bin/other", .arguments = {"other"}});
  find().IgnoreError();
  Add({.pid = 6, .executable = "/bin/app", .arguments = {"app"}});
  EXPECT_EQ(find()->ranks.size(), 2u) << "another name: exec";
  Add({.pid = 7, .executable = "/bin/other", .arguments = {"other"}});
  find().IgnoreError();
  Add({.pid = 7, .executable = "/bin/app", .arguments = {"other"}, .start_ticks = 101});
  EXPECT_EQ(find()->ranks.size(), 3u) << "another process";
}

TEST_F(RankFinderTest, NumbersStayFromScanToScan) {
  Add({.pid = 100});
  Add({.pid = 200});
  ProcessScan scan(clock_);
  const auto find = [&] { return finder().Find(Command("app"), {}, kAlice, &scan); };
  EXPECT_EQ(find()->ranks.at(1).rank, 1);
  proc_.Remove(100);
  Add({.pid = 300});
  const auto later = find();
  ASSERT_EQ(later->ranks.size(), 2u);
  EXPECT_EQ(later->ranks[0].pid, 200);
  EXPECT_EQ(later->ranks[0].rank, 1);
  EXPECT_EQ(later->ranks[1].pid, 300);
  EXPECT_EQ(later->ranks[1].rank, 2);
}

// One is stuck in the kernel when it is looked at anew: it keeps its number all the same.
TEST_F(RankFinderTest, InAJobThatIsFollowedANumberIsFreeWhenItsProcessHasEnded) {
  const auto add = [&](int32_t pid, const std::string& executable, char state) {
    Add({.pid = pid,
         .executable = executable,
         .environment = {{"PBS_JOBID", "9.server"}},
         .state = state});
  };
  TargetSpec target;
  target.slurm_job = 9;
  ProcessScan scan(clock_, true);
  const auto find = [&] { return finder().Find(target, {}, kAlice, &scan); };
  add(10, "/bin/bash", 'S');
  EXPECT_TRUE(absl::IsNotFound(find().status())) << "nothing but the shell of the script";
  add(20, "/opt/first", 'R');
  EXPECT_EQ(find()->ranks.at(0).rank, 0);
  add(20, "/opt/first", 'D');
  add(30, "/opt/second", 'R');
  clock_.now_ns += 2 * ProcessScan::kHoldNs;
  ASSERT_EQ(find()->ranks.size(), 1u);
  EXPECT_EQ(find()->ranks.at(0).rank, 1) << "the first still lives";
  proc_.Remove(20);
  proc_.Remove(30);
  EXPECT_TRUE(absl::IsNotFound(find().status()));
  add(40, "/opt/third", 'R');
  const auto third = find();
  ASSERT_EQ(third->ranks.size(), 1u);
  EXPECT_EQ(third->ranks[0].pid, 40);
  EXPECT_EQ(third->ranks[0].rank, 0);
}

TEST_F(RankFinderTest, TheEnvironmentOfOthersIsNotReadForASlurmJob) {
  Add({.pid = 5, .uid = 4000002, .environment = {{"SLURM_JOB_ID", "9"}}});
  TargetSpec target;
  target.slurm_job = 9;
  EXPECT_TRUE(absl::IsNotFound(Find(target).status()));
  EXPECT_EQ(Find(target, kRoot)->ranks.size(), 1u);
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
}  // namespace perfd::agent
