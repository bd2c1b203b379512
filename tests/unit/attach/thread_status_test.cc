#include "agent/attach/thread_status.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace perfd::agent {
namespace {

constexpr uint64_t Bit(int signal) {
  return uint64_t{1} << (signal - 1);
}

TEST(ThreadStatusTest, ReadsTheLinesThatMatter) {
  const auto status = ParseThreadStatus(
      "Name:\tx\nState:\tS (sleeping)\nTracerPid:\t12\nSigPnd:\t0000000000000001\n"
      "ShdPnd:\t0000000000000002\nSigBlk:\t0000000000000004\nSigIgn:\t0000000000000008\n"
      "SigCgt:\t0000000000000010\nSeccomp:\t2\nx86_Thread_features:\tshstk wrss\n");
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->state, 'S');
  EXPECT_EQ(status->tracer_pid, 12);
  EXPECT_EQ(status->pending, 3U);
  EXPECT_EQ(status->blocked, 4U);
  EXPECT_EQ(status->ignored, 8U);
  EXPECT_EQ(status->caught, 16U);
  EXPECT_EQ(status->seccomp_mode, 2);
  EXPECT_TRUE(status->shadow_stack);
  EXPECT_FALSE(ParseThreadStatus("Name:\tx\n").ok());
  EXPECT_FALSE(ParseThreadStatus("").ok());
}

TEST(ThreadStatusTest, ReasonsNotToInject) {
  ThreadStatus fine;
  fine.state = 'R';
  EXPECT_TRUE(CheckInjectable(fine, 1).ok());
  ThreadStatus status = fine;
  status.tracer_pid = 5;
  EXPECT_FALSE(CheckInjectable(status, 1).ok());
  status = fine;
  status.seccomp_mode = 1;
  EXPECT_FALSE(CheckInjectable(status, 1).ok());
  status = fine;
  status.shadow_stack = true;
  EXPECT_FALSE(CheckInjectable(status, 1).ok());
  status = fine;
  status.state = 'T';
  EXPECT_EQ(CheckInjectable(status, 1).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(ThreadStatusTest, OnlySignalsWithAnEffectWillBeHandled) {
  ThreadStatus status;
  EXPECT_FALSE(SignalWillBeHandled(status));
  status.pending = Bit(SIGCHLD);
  EXPECT_FALSE(SignalWillBeHandled(status));  // ignored by default
  status.caught = Bit(SIGCHLD);
  EXPECT_TRUE(SignalWillBeHandled(status));
  status.blocked = Bit(SIGCHLD);
  EXPECT_FALSE(SignalWillBeHandled(status));
  status = {};
  status.pending = Bit(SIGUSR1);
  EXPECT_TRUE(SignalWillBeHandled(status));
  status.ignored = Bit(SIGUSR1);
  EXPECT_FALSE(SignalWillBeHandled(status));
}

}  // namespace
}  // namespace perfd::agent
