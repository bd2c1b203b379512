#include "agent/attach/thread/restart_rules.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

namespace perfd::agent {
namespace {

user_regs_struct Stopped(int64_t orig_rax, int64_t rax) {
  user_regs_struct registers{};
  registers.cs = 0x33;
  registers.rip = 0x1002;
  registers.orig_rax = static_cast<uint64_t>(orig_rax);
  registers.rax = static_cast<uint64_t>(rax);
  return registers;
}

TEST(RestartRulesTest, FitnessByWhatTheThreadDoes) {
  EXPECT_EQ(FitnessForCall(Stopped(-1, 5)), CallFitness::kFree);
  EXPECT_EQ(FitnessForCall(Stopped(-1, -512)), CallFitness::kFree);  // just a number
  EXPECT_EQ(FitnessForCall(Stopped(SYS_read, 5)), CallFitness::kFree);
  for (const int code : {-512, -513, -514})
    EXPECT_EQ(FitnessForCall(Stopped(SYS_futex, code)), CallFitness::kRestarts) << code;
  EXPECT_EQ(FitnessForCall(Stopped(SYS_poll, -516)), CallFitness::kRestartBlock);
  EXPECT_EQ(FitnessForCall(Stopped(SYS_restart_syscall, -516)), CallFitness::kUnfit);
  user_regs_struct narrow = Stopped(-1, 0);
  narrow.cs = 0x23;
  EXPECT_EQ(FitnessForCall(narrow), CallFitness::kUnfit);
}

TEST(RestartRulesTest, ResumedAsTheKernelWould) {
  for (const int code : {-512, -513, -514, -516}) {
    const user_regs_struct resumed = AsResumed(Stopped(SYS_futex, code));
    EXPECT_EQ(resumed.rax, static_cast<uint64_t>(SYS_futex)) << code;
    EXPECT_EQ(resumed.rip, 0x1000U) << code;
    EXPECT_EQ(resumed.orig_rax, ~uint64_t{0}) << code;
  }
  for (const int code : {-4, -515, -517, 0, 8}) {
    const user_regs_struct resumed = AsResumed(Stopped(SYS_futex, code));
    EXPECT_EQ(resumed.rax, static_cast<uint64_t>(code)) << code;
    EXPECT_EQ(resumed.rip, 0x1002U) << code;
  }
  EXPECT_EQ(AsResumed(Stopped(-1, -512)).rip, 0x1002U);
}

TEST(RestartRulesTest, OnlyListedWaitsSeeAFalseEintr) {
  EXPECT_TRUE(LooksLikeFalseEintr(Stopped(SYS_epoll_wait, -4)));
  EXPECT_TRUE(LooksLikeFalseEintr(Stopped(SYS_semtimedop, -4)));
  EXPECT_FALSE(LooksLikeFalseEintr(Stopped(SYS_epoll_wait, 0)));
  EXPECT_FALSE(LooksLikeFalseEintr(Stopped(SYS_close, -4)));
  EXPECT_FALSE(LooksLikeFalseEintr(Stopped(SYS_connect, -4)));  // would be told EALREADY
  EXPECT_FALSE(LooksLikeFalseEintr(Stopped(-1, -4)));
}

}  // namespace
}  // namespace perfd::agent
