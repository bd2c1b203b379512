// The payload in the test's own process: shadows that fault, hang, vanish or may not be, and what the rank sees of it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>

#include "gmock/gmock.h"
#include "tests/integration/shadow/payload_fixture.h"
#include "tests/integration/shadow/system_call_code.h"

namespace perfd::agent {
namespace {

TEST_F(PayloadTest, FaultEndsOneRunAndIsReported) {
  std::vector<double> v = Ramp(10);
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  uint64_t bad = injector.Raw({0x48, 0xa1, 0x10, 0, 0, 0, 0, 0, 0, 0});  // movabs 0x10,%rax
  uint64_t count = injector.Count(kSum);
  injector.Plan(site, 1, {{count, 0, 0, 0, 0}, {bad, 0, 0, 0, 0}, {count, 0, 0, 0, 0}});
  injector.Arm(site);
  EXPECT_EQ(loop_sum(v.data(), 10), 55.0);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeDone);
  EXPECT_EQ(injector.result(1, 0).status, uint32_t{kRunFaulted});
  EXPECT_EQ(injector.child().fault_count, 1u);
  EXPECT_EQ(injector.child().fault.signal, uint32_t{SIGSEGV});
  EXPECT_EQ(injector.child().fault.address, 0x10u);
  EXPECT_EQ(injector.child().fault.pc, bad);
  EXPECT_EQ(injector.child().fault.run, 1u);
  EXPECT_EQ(injector.result(2, 0).iterations, 10u);
}

TEST_F(PayloadTest, ManyFaultsEndTheShadow) {
  std::vector<double> v = Ramp(10);
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  uint64_t bad = injector.Raw({0x0f, 0x0b});  // ud2
  injector.Plan(site, 1, std::vector<RunEntry>(20, RunEntry{bad, 0, 0, 0, 0}));
  injector.Arm(site);
  EXPECT_EQ(loop_sum(v.data(), 10), 55.0);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeFaulted);
  EXPECT_EQ(injector.child().fault.signal, uint32_t{SIGILL});
  EXPECT_EQ(injector.child().fault_count, 8u);
}

TEST_F(PayloadTest, EndlessRunIsEndedAndNamed) {
  std::vector<double> v = Ramp(10);
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  ShadowPlan& plan = injector.Plan(
      site, 1, {{injector.Ref(kSum), 0, 0, 0, 0}, {injector.Raw({0xeb, 0xfe}), 0, 0, 0, 0}});
  plan.shadow_ns = 100000000;
  injector.Arm(site);
  uint64_t start = ReadTicks();
  EXPECT_EQ(loop_sum(v.data(), 10), 55.0);
  EXPECT_LT(ReadTicks() - start, 2000000000u);  // under a second at any TSC pace from 2 GHz
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeWatchdog);
  EXPECT_EQ(injector.child().current_run, 1u);
  EXPECT_EQ(injector.result(0, 0).status, uint32_t{kRunOk});
}

// A copy that makes itself deaf to its own watchdog: only the rank's limit is left.
TEST_F(PayloadTest, DeafShadowIsKilledByTheRank) {
  std::vector<double> v = Ramp(10);
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  const uint64_t all = ~uint64_t{0};
  constexpr uint64_t kMaskBytes = 8;
  std::vector<uint8_t> code = SystemCall(
      {SYS_rt_sigprocmask, {SIG_SETMASK, AddressOf(&all), 0, kMaskBytes}}, injector.kernel_door());
  code.insert(code.end(), {0xeb, 0xfe});
  uint64_t deaf = injector.Raw(code);
  injector.Plan(site, 1, {{deaf, 0, 0, 0, 0}}).shadow_ns = 100000000;
  injector.Arm(site);
  EXPECT_EQ(loop_sum(v.data(), 10), 55.0);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeKilled);
  EXPECT_EQ(injector.site(site).last_error, SIGKILL);
  EXPECT_EQ(injector.region().orphan, 0u);
}

TEST_F(PayloadTest, ShadowThatIsGoneIsNoticed) {
  std::vector<double> v = Ramp(10);
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  uint64_t leave = injector.Raw(SystemCall({SYS_exit_group, {7}}, injector.kernel_door()));
  injector.Plan(site, 1, {{leave, 0, 0, 0, 0}});
  injector.Arm(site);
  EXPECT_EQ(loop_sum(v.data(), 10), 55.0);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeDied);
  EXPECT_EQ(injector.site(site).last_error, 7 << 8);
}

uint64_t ChildrenCpuUs() {
  rusage use{};
  getrusage(RUSAGE_CHILDREN, &use);
  const auto us = [](const timeval& t) { return t.tv_sec * 1000000 + t.tv_usec; };
  return static_cast<uint64_t>(us(use.ru_utime) + us(use.ru_stime));
}

// What the kernel adds to the children of the rank is what the region says.
TEST_F(PayloadTest, CpuTimeOfShadowsIsThatOfTheRanksChildren) {
  std::vector<double> v = Ramp(200000);
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  const uint64_t before = ChildrenCpuUs();
  constexpr uint64_t kShadows = 3;
  for (uint64_t i = 0; i < kShadows; ++i) {
    injector.Plan(site, 1, std::vector<RunEntry>(20, RunEntry{injector.Ref(kSum), 0, 0, 0, 0}));
    injector.Arm(site);
    loop_sum(v.data(), 200000);
    ASSERT_EQ(injector.site(site).last_outcome, kOutcomeDone);
  }
  const uint64_t used = ChildrenCpuUs() - before;
  EXPECT_GT(used, 1000u);
  // Both are cut to whole microseconds, user and system time apart.
  EXPECT_NEAR(static_cast<double>(injector.site(site).shadow_cpu_us), static_cast<double>(used),
              2.0 * kShadows);
}

// As a supervisor does that waits for whatever child there is.
TEST_F(PayloadTest, ShadowThatTheProgramReapsIsTheLastOne) {
  std::vector<double> v = Ramp(10);
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  // The rank looks after its shadow only after some milliseconds then.
  uint64_t leave = injector.Raw(SystemCall({SYS_exit_group, {7}}, injector.kernel_door()));
  std::atomic<bool> over = false;
  std::atomic<int> reaped = 0;
  std::thread supervisor([&] {
    while (!over) reaped += waitpid(-1, nullptr, __WALL | WNOHANG) > 0;
  });
  const auto shadow = [&] {
    injector.Plan(site, 1, {{leave, 0, 0, 0, 0}});
    injector.Arm(site);
    EXPECT_EQ(loop_sum(v.data(), 10), 55.0);
    return injector.site(site).last_outcome;
  };
  uint32_t outcome = shadow();
  for (int i = 0; i < 50 && outcome == kOutcomeDied; ++i) outcome = shadow();
  EXPECT_EQ(outcome, kOutcomeTaken);
  EXPECT_TRUE(injector.region().flags & kRegionShadowTaken);
  EXPECT_EQ(injector.region().orphan, 0u);
  const uint64_t shadows = injector.site(site).shadows;
  EXPECT_EQ(shadow(), kOutcomeTaken);
  EXPECT_EQ(injector.site(site).shadows, shadows) << "another one was made";
  over = true;
  supervisor.join();
  EXPECT_EQ(reaped, 1);
}

TEST_F(PayloadTest, SharedMemoryStaysUntouched) {
  constexpr size_t kBytes = 8192;
  auto* shared = static_cast<int64_t*>(
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  SelfHosted injector;
  uint32_t site = injector.Install(kUpdate);
  ShadowPlan& plan = injector.Plan(site, 1, {{injector.Ref(kUpdate), 0, 0, 0, 0}});
  plan.protect_count = 1;
  plan.protects[0] = {reinterpret_cast<uint64_t>(shared), kBytes, PROT_READ, 0};
  injector.Arm(site);
  loop_update(shared, 1000);
  EXPECT_EQ(injector.result(0, 0).status, uint32_t{kRunFaulted});
  EXPECT_EQ(injector.child().fault.address, reinterpret_cast<uint64_t>(shared));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(shared[i], 3);  // once, by the rank
  munmap(shared, kBytes);
}

TEST_F(PayloadTest, ShadowMayNotWriteTheRanksPartOfTheRegion) {
  SelfHosted injector;
  uint32_t site = injector.Install(kUpdate);
  std::vector<int64_t> v(4, 0);
  auto victim = reinterpret_cast<uint64_t>(&injector.region().magic);
  std::vector<uint8_t> poke = {
      0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0x48, 0xff, 0x00};  // movabs $victim,%rax; incq (%rax)
  memcpy(poke.data() + 2, &victim, 8);
  injector.Plan(site, 1, {{injector.Raw(poke), 0, 0, 0, 0}});
  injector.Arm(site);
  loop_update(v.data(), 4);
  EXPECT_EQ(injector.region().magic, kShadowMagic);
  EXPECT_EQ(injector.result(0, 0).status, uint32_t{kRunFaulted});
}

TEST_F(PayloadTest, HostilePlansAreRefused) {
  std::vector<double> v = Ramp(10);
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  uint64_t ref = injector.Ref(kSum);
  injector.Plan(site, 1, {{ref, 0, 0, 0, 0}}).run_count = kMaxRuns + 1;
  injector.Arm(site);
  loop_sum(v.data(), 10);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeSetupFailed);
  EXPECT_EQ(injector.child().error_step, uint32_t{kStepPlan});
  injector.Plan(site, 1, {{ref, 0, 0, 0, 0}}).protect_count = kMaxProtects + 1;
  injector.Arm(site);
  loop_sum(v.data(), 10);
  EXPECT_EQ(injector.child().error_step, uint32_t{kStepPlan});
  injector.Plan(site, 1, {{ref, 0, 0, 0, 0}}).restore_count = kMaxRestores + 1;
  injector.Arm(site);
  loop_sum(v.data(), 10);
  EXPECT_EQ(injector.child().error_step, uint32_t{kStepPlan});
  for (uint32_t team : {0u, 9u, 1000000u}) {
    injector.Plan(site, team, {{ref, 0, 0, 0, 0}});
    injector.Arm(site);
    EXPECT_EQ(loop_sum(v.data(), 10), 55.0);
    EXPECT_EQ(injector.site(site).mode, uint32_t{kModeArmed});  // nobody joined
    injector.SetMode(site, kModeIdle);
  }
}

TEST_F(PayloadTest, StaleHeartbeatPassesThroughAndGoesIdle) {
  std::vector<double> v = Ramp(10);
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  injector.Plan(site, 1, {{injector.Ref(kSum), 0, 0, 0, 0}});
  injector.Arm(site);
  injector.region().stale_ticks = 1000;
  EXPECT_EQ(loop_sum(v.data(), 10), 55.0);
  EXPECT_EQ(injector.site(site).shadows, 0u);
  EXPECT_EQ(injector.site(site).mode, uint32_t{kModeIdle});
  EXPECT_EQ(injector.region().stale_entries, 1u);
}

TEST_F(PayloadTest, ForkOfTheApplicationPassesThrough) {
  std::vector<double> v = Ramp(10);
  signal(SIGCHLD, SIG_DFL);
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  injector.Plan(site, 1, {{injector.Ref(kSum), 0, 0, 0, 0}});
  injector.Arm(site);
  pid_t pid = fork();
  if (pid == 0) _exit(loop_sum(v.data(), 10) == 55.0 ? 42 : 1);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_EQ(injector.region().foreign_entries, 1u);
  EXPECT_EQ(injector.site(site).shadows, 0u);
  EXPECT_EQ(injector.site(site).mode, uint32_t{kModeArmed});
}

TEST_F(PayloadTest, ForkOfTheApplicationGoesIdleWhenTheAgentIsGone) {
  std::vector<double> v = Ramp(10);
  signal(SIGCHLD, SIG_DFL);
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  injector.Plan(site, 1, {{injector.Ref(kSum), 0, 0, 0, 0}});
  injector.Arm(site);
  injector.region().stale_ticks = 1000;
  pid_t pid = fork();
  if (pid == 0) _exit(loop_sum(v.data(), 10) == 55.0 ? 42 : 1);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_EQ(injector.region().foreign_entries, 1u);
  EXPECT_EQ(injector.site(site).mode, uint32_t{kModeIdle});
  EXPECT_EQ(injector.site(site).entries, 0u);
}

// RLIMIT_NPROC does not bind root, so a process of another user tries.
TEST_F(PayloadTest, ForkThatFailsIsReported) {
  if (geteuid() != 0) GTEST_SKIP() << "SKIPPED: needs another user";
  signal(SIGCHLD, SIG_DFL);
  pid_t pid = fork();
  if (pid == 0) {
    std::vector<double> v = Ramp(10);
    SelfHosted injector;
    uint32_t site = injector.Install(kSum);
    rlimit none = {0, 0};
    setrlimit(RLIMIT_NPROC, &none);
    if (setresuid(65534, 65534, 65534) != 0) _exit(2);
    injector.Plan(site, 1, {{injector.Ref(kSum), 0, 0, 0, 0}});
    injector.Arm(site);
    bool right = loop_sum(v.data(), 10) == 55.0;
    const Site& s = injector.site(site);
    _exit(right && s.last_outcome == kOutcomeForkFailed && s.last_error == EAGAIN ? 42 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST_F(PayloadTest, ShadowWaitsForTheAgentAndGivesUp) {
  std::vector<double> v = Ramp(10);
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  ShadowPlan& plan = injector.Plan(site, 1, {{injector.Ref(kSum), 0, 0, 0, 0}});
  plan.flags = kPlanWaitForAgent;
  plan.agent_wait_ns = 20000000;
  injector.Arm(site);
  EXPECT_EQ(loop_sum(v.data(), 10), 55.0);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeSetupFailed);
  EXPECT_EQ(injector.child().error_step, uint32_t{kStepAgent});
}

TEST_F(PayloadTest, TwoHundredShadowsInARow) {
  std::vector<int64_t> v(64, 0);
  SelfHosted injector;
  uint32_t site = injector.Install(kUpdate);
  uint64_t ref = injector.Ref(kUpdate), count = injector.Count(kUpdate);
  for (int i = 0; i < 200; ++i) {
    injector.Plan(site, 1, {{ref, 0, 0, 0, 0}, {count, 0, 1 << kRunEvictShift, 0, 0}})
        .memory.evict_bytes[1] = 65536;
    injector.Arm(site);
    loop_update(v.data(), 64);
    ASSERT_EQ(injector.site(site).last_outcome, kOutcomeDone) << i;
    ASSERT_EQ(injector.result(1, 0).iterations, 64u);
  }
  EXPECT_EQ(injector.site(site).shadows, 200u);
  for (int64_t x : v) ASSERT_EQ(x, 600);
}

}  // namespace
}  // namespace perfd::agent
