// Who is kept from running, by a signal or by the freezer of either version, from a tree of our own making and from a real process.
#include "agent/procfs/cgroup/suspension.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/procfs/fake_groups.h"

namespace perfd::agent {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class SuspensionTest : public FakeGroups {
 protected:
  SuspensionTest() : FakeGroups("freezer") {}

  void SetUp() override {
    FakeGroups::SetUp();
    SetState('R');
    Write("v1/job/step/freezer.state", "THAWED\n");
    Write("v2/a/b/cgroup.freeze", "0\n");
    Write("v2/a/cgroup.freeze", "0\n");
  }

  void SetState(char state) {
    Write("proc/7/stat",
          absl::StrCat("7 (a) b) ", std::string(1, state),
                       " 1 7 7 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 100 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
                       "17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"));
  }
};

TEST_F(SuspensionTest, WhoRunsIsNotSuspended) {
  EXPECT_EQ(SuspendedBy(procfs(), 7), "");
  EXPECT_TRUE(CheckNotSuspended(procfs(), 7).ok());
  EXPECT_EQ(SuspendedBy(procfs(), 8), "");  // nobody
  SetState('t');                            // a debugger's: it is refused by name elsewhere
  EXPECT_EQ(SuspendedBy(procfs(), 7), "");
}

TEST_F(SuspensionTest, StoppedByASignal) {
  SetState('T');
  const absl::Status status = CheckNotSuspended(procfs(), 7);
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("process 7 is suspended (SIGSTOP)"));
}

TEST_F(SuspensionTest, FrozenWithItsGroupOfTheFirstVersion) {
  for (const char* state : {"FREEZING\n", "FROZEN\n"}) {
    Write("v1/job/step/freezer.state", state);
    EXPECT_THAT(SuspendedBy(procfs(), 7), EndsWith("v1/job/step")) << state;
  }
}

TEST_F(SuspensionTest, FrozenWithAnyGroupAboveOfTheSecondVersion) {
  Write("v2/a/b/cgroup.freeze", "1\n");
  EXPECT_THAT(SuspendedBy(procfs(), 7), EndsWith("v2/a/b"));
  Write("v2/a/b/cgroup.freeze", "0\n");
  Write("v2/a/cgroup.freeze", "1\n");
  EXPECT_THAT(SuspendedBy(procfs(), 7), EndsWith("v2/a"));
}

TEST(RealSuspensionTest, AProcessThatWasStopped) {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  const ProcFs procfs;
  EXPECT_EQ(SuspendedBy(procfs, child), "");
  kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_EQ(SuspendedBy(procfs, child), "SIGSTOP");
  kill(child, SIGCONT);
  ASSERT_EQ(waitpid(child, &status, WCONTINUED), child);
  EXPECT_EQ(SuspendedBy(procfs, child), "");
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
}

}  // namespace
}  // namespace perfd::agent
