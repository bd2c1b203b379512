#include "agent/procfs/clone_waiter.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/unit/procfs/fake_proc.h"

namespace perfd::agent {
namespace {

std::string Line(int64_t call, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  return absl::StrFormat("%d 0x%x 0x%x 0x%x 0x%x 0x0 0x0 0x7ffc00000000 0x7f0000000000\n", call, a,
                         b, c, d);
}
std::string Wait4(uint64_t pid, uint64_t options) {
  return Line(SYS_wait4, pid, 0, options, 0);
}
std::string Waitid(uint64_t kind, uint64_t options) {
  return Line(SYS_waitid, kind, 7, 0, options);
}

constexpr uint64_t kAny = ~uint64_t{0};
constexpr uint64_t kAll = 0x40000000, kClone = 0x80000000;

TEST(CloneWaiterTest, WhoWaitsForAnyChildCloneOrNotIsFound) {
  EXPECT_TRUE(WaitsForAnyClone(Wait4(kAny, kAll)));
  EXPECT_TRUE(WaitsForAnyClone(Wait4(kAny, kClone)));
  EXPECT_TRUE(WaitsForAnyClone(Wait4(0xffffffff, 0xffffffffc0000000)))
      << "as a library passes ints";
  EXPECT_TRUE(WaitsForAnyClone(Wait4(0, kAll))) << "of its own process group";
  EXPECT_TRUE(WaitsForAnyClone(Wait4(static_cast<uint64_t>(-77), kAll | WUNTRACED)));
  EXPECT_TRUE(WaitsForAnyClone(Waitid(P_ALL, kAll | WEXITED)));
  EXPECT_TRUE(WaitsForAnyClone(Waitid(P_PGID, kClone | WEXITED)));
}

TEST(CloneWaiterTest, WhoWaitsForOneChildOrForOrdinaryOnesIsNot) {
  EXPECT_FALSE(WaitsForAnyClone(Wait4(kAny, 0)));
  EXPECT_FALSE(WaitsForAnyClone(Wait4(kAny, WUNTRACED | WCONTINUED)));
  EXPECT_FALSE(WaitsForAnyClone(Wait4(77, kAll)));
  EXPECT_FALSE(WaitsForAnyClone(Waitid(P_PID, kAll | WEXITED)));
  EXPECT_FALSE(WaitsForAnyClone(Waitid(P_PIDFD, kAll | WEXITED)));
  EXPECT_FALSE(WaitsForAnyClone(Waitid(P_ALL, WEXITED)));
  EXPECT_FALSE(WaitsForAnyClone(Line(SYS_futex, kAny, 0, kAll, kAll)));
}

TEST(CloneWaiterTest, ForeignLinesWaitForNobody) {
  for (const char* line : {"", "running\n", "-1 0x7ffc 0x7f00\n", "61 0x0", "61 x x x x x x x x",
                           "61  0xffffffffffffffff 0x0 0x40000000 0x0 0x0 0x0 0x0 0x0"})
    EXPECT_FALSE(WaitsForAnyClone(line)) << line;
}

TEST(CloneWaiterTest, EveryThreadIsLookedAt) {
  FakeProc proc;
  proc.AddProcess({.pid = 7});
  proc.Write("7/task/7/syscall", "running\n");
  proc.Write("7/task/8/syscall", Wait4(kAny, 0));
  EXPECT_EQ(FindCloneWaiter(ProcFs(proc.root()), 7).value_or(-1), 0);
  proc.Write("7/task/9/syscall", Wait4(kAny, kAll));
  EXPECT_EQ(FindCloneWaiter(ProcFs(proc.root()), 7).value_or(-1), 9);
  EXPECT_TRUE(absl::IsNotFound(FindCloneWaiter(ProcFs(proc.root()), 99).status()));
}

// A thread of this process, as the kernel shows it.
TEST(CloneWaiterTest, TheKernelShowsASleepingWaiter) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  pid_t tid = 0;
  std::thread waiter([&] {
    __atomic_store_n(&tid, gettid(), __ATOMIC_SEQ_CST);
    waitpid(-1, nullptr, __WALL);
  });
  int32_t found = 0;
  for (int i = 0; i < 10000 && found == 0; ++i) {
    found = FindCloneWaiter(ProcFs(), getpid()).value_or(-1);
    usleep(1000);
  }
  EXPECT_EQ(found, __atomic_load_n(&tid, __ATOMIC_SEQ_CST));
  kill(child, SIGKILL);
  waiter.join();
  EXPECT_EQ(FindCloneWaiter(ProcFs(), getpid()).value_or(-1), 0);
}

}  // namespace
}  // namespace perfd::agent
