#include "agent/discover/cgroup_scope.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/procfs/fake_proc.h"

namespace perfd::agent {
namespace {

TEST(JobPart, EndsAfterTheJob) {
  EXPECT_EQ(JobPart("/slurm/uid_1/job_7/step_0", ""), "/slurm/uid_1/job_7");
  EXPECT_EQ(JobPart("/job_7", "7"), "/job_7");
  EXPECT_EQ(JobPart("/job_7", "8"), "");
  EXPECT_EQ(JobPart("/job_8/job_7/x", "7"), "/job_8/job_7");
  EXPECT_EQ(JobPart("/job_/job_7a/myjob_7", ""), "");
  EXPECT_EQ(JobPart("/", ""), "");
}

class CgroupScopeTest : public testing::Test {
 protected:
  CgroupScopeTest() {
    mount_ = proc_.root() + "/cg";
    proc_.Write("mounts", absl::StrCat("cgroup2 ", mount_, " cgroup2 rw 0 0\n"));
    proc_.Write("cg/s/job_7/cgroup.procs", "");
    proc_.Write("cg/s/job_7/step_0/cgroup.procs", "10\n11\n");
    Add(10, 1000, "app");
    Add(11, 1000, "app");
  }
  void Add(int32_t pid, uint32_t uid, const std::string& name) {
    proc_.AddProcess(
        {.pid = pid, .uid = uid, .arguments = {name}, .cgroup = "0::/s/job_7/step_0\n"});
  }
  std::string Scope(const std::string& job = "7") {
    std::vector<RankInfo> ranks(2);
    for (size_t i = 0; i < 2; ++i) {
      ranks[i].pid = 10 + static_cast<int32_t>(i);
      ranks[i].uid = 1000;
      ranks[i].job_id = job;
    }
    return FindJobCgroup(ProcFs(proc_.root()), ranks);
  }

  FakeProc proc_;
  std::string mount_;
};

TEST_F(CgroupScopeTest, FindsTheJobsDirectory) {
  EXPECT_EQ(Scope(), mount_ + "/s/job_7");
}

TEST_F(CgroupScopeTest, ARootOwnedStepDaemonIsPartOfTheJob) {
  proc_.Write("cg/s/job_7/step_0/slurm/cgroup.procs", "12\n");
  Add(12, 0, "slurmstepd");
  EXPECT_EQ(Scope(), mount_ + "/s/job_7");
}

TEST_F(CgroupScopeTest, AStrangerSpoilsIt) {
  proc_.Write("cg/s/job_7/step_9/cgroup.procs", "12\n");
  Add(12, 1001, "app");
  EXPECT_EQ(Scope(), "");
}

TEST_F(CgroupScopeTest, ASetuidProgramSpoilsIt) {
  proc_.Write("cg/s/job_7/step_9/cgroup.procs", "12\n");
  Add(12, 1000, "su");
  EXPECT_NE(Scope(), "");
  proc_.AddProcess({.pid = 12, .arguments = {"su"}, .effective_uid = 0});
  EXPECT_EQ(Scope(), "");
}

TEST_F(CgroupScopeTest, AProcessOfAnotherPidNamespaceSpoilsIt) {
  proc_.Write("cg/s/job_7/step_9/cgroup.procs", "0\n");
  EXPECT_EQ(Scope(), "");
}

TEST_F(CgroupScopeTest, AnotherJobsPathIsNotTaken) {
  EXPECT_EQ(Scope("8"), "");
}

TEST_F(CgroupScopeTest, TheV1ControllerComesFirst) {
  proc_.Write("mounts", absl::StrCat("cgroup2 ", mount_, " cgroup2 rw 0 0\ncgroup ", proc_.root(),
                                     "/v1 cgroup rw,perf_event 0 0\n"));
  EXPECT_EQ(Scope(), "") << "no rank is in a perf_event cgroup";
  for (const int pid : {10, 11}) {
    proc_.Write(absl::StrCat(pid, "/cgroup"), "3:perf_event:/slurm/job_7/step_0\n0::/\n");
  }
  proc_.Write("v1/slurm/job_7/cgroup.procs", "10\n11\n");
  EXPECT_EQ(Scope(), proc_.root() + "/v1/slurm/job_7");
}

}  // namespace
}  // namespace perfd::agent
