// The payload in the test's own process, one thread: pass-through, census, live timing, shadows and every way they may go wrong.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/shadow/self_hosted.h"

namespace perfd {
namespace {

const LoopText kSum = TextOf(loop_sum_header, loop_sum_exit);
const LoopText kUpdate = TextOf(loop_update_header, loop_update_exit);
const LoopText kState = TextOf(loop_state_header, loop_state_exit);

std::vector<double> Ramp(int64_t n) {
  std::vector<double> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), 1.0);
  return v;
}

int OpenDescriptors() {
  int n = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    n += !entry.path().empty();
  return n;
}

volatile sig_atomic_t g_child_signals = 0;

// After any shadow: no child, no signal, no descriptor.
class PayloadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    g_child_signals = 0;
    signal(SIGCHLD, [](int) { g_child_signals = g_child_signals + 1; });
    descriptors_ = OpenDescriptors();
  }
  void TearDown() override {
    EXPECT_EQ(g_child_signals, 0);
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG | __WALL), -1);
    EXPECT_EQ(errno, ECHILD);
    EXPECT_EQ(OpenDescriptors(), descriptors_);
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, nullptr, &blocked);
    EXPECT_FALSE(sigismember(&blocked, SIGTERM));
    signal(SIGCHLD, SIG_DFL);
  }
  int descriptors_ = 0;
};

TEST_F(PayloadTest, IdleEntryPassesThrough) {
  std::vector<double> v = Ramp(100);
  SelfHosted lab;
  uint32_t site = lab.Install(kSum);
  EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
  EXPECT_EQ(loop_sum(v.data(), 1), 1.0);
  EXPECT_EQ(lab.site(site).entries, 0u);
}

TEST_F(PayloadTest, TextIsAsBeforeAfterwards) {
  std::vector<uint8_t> before(loop_sum_header, loop_sum_exit);
  {
    SelfHosted lab;
    lab.Install(kSum);
    EXPECT_NE(memcmp(before.data(), loop_sum_header, before.size()), 0);
  }
  EXPECT_EQ(memcmp(before.data(), loop_sum_header, before.size()), 0);
}

// Everything live at the entry, in every mode: vector registers, masks, flags, red zone, general registers.
TEST_F(PayloadTest, StateSurvivesEveryMode) {
  if (!__builtin_cpu_supports("avx512bw")) GTEST_SKIP() << "SKIPPED: no AVX-512";
  struct Image {
    uint8_t bytes[2304];
  };
  Image filled;
  for (size_t i = 0; i < sizeof(filled.bytes); ++i)
    filled.bytes[i] = static_cast<uint8_t>(i * 7 + 1);
  Image expected = filled;
  loop_state(&expected, 3);
  EXPECT_EQ(memcmp(&expected, &filled, 2128), 0);  // the loop itself keeps them
  SelfHosted lab;
  uint32_t site = lab.Install(kState);
  uint64_t ref = lab.Ref(kState);
  for (uint32_t mode : {kModeIdle, kModeCensus, kModeArmed, kModeLive, kModeArmed}) {
    if (mode == kModeArmed) {
      lab.Plan(site, 1, {{ref, 0, 0, 0, 0}, {ref, 0, kRunFtz, 0, 0}});
      lab.Arm(site);
    }
    lab.SetMode(site, mode);
    Image image = filled;
    loop_state(&image, 3);
    EXPECT_EQ(memcmp(&image, &expected, sizeof(image)), 0) << "mode " << mode;
  }
  EXPECT_EQ(lab.site(site).shadows, 2u);
  EXPECT_EQ(lab.site(site).last_outcome, kOutcomeDone);
}

// The copy that stands for the thread has its vector registers to the last lane, masks, red zone and general registers.
TEST_F(PayloadTest, ShadowHasTheWholeStateOfItsTwin) {
  if (!__builtin_cpu_supports("avx512bw")) GTEST_SKIP() << "SKIPPED: no AVX-512";
  std::vector<uint8_t> image(2304);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<uint8_t>(i * 7 + 1);
  auto word = [&](size_t at) {
    uint64_t value;
    memcpy(&value, &image[at], 8);
    return value;
  };
  const std::vector<uint64_t> expected = {word(31 * 64 + 56), word(2048 + 5 * 8), word(2120),
                                          0xccccu + 0x6666u};
  SelfHosted lab;
  uint32_t site = lab.Install(kState);
  const std::vector<uint8_t> tail = {0x65, 0x48, 0x89, 0x04, 0x25, 0, 0, 0, 0};  // mov %rax,%gs:0
  std::vector<std::vector<uint8_t>> looks = {
      // valignq $7,%zmm31,%zmm31,%zmm30; vmovq %xmm30,%rax
      {0x62, 0x03, 0x85, 0x40, 0x03, 0xf7, 0x07, 0x62, 0x61, 0xfd, 0x08, 0x7e, 0xf0},
      {0xc4, 0xe1, 0xfb, 0x93, 0xc5},  // kmovq %k5,%rax
      {0x48, 0x8b, 0x44, 0x24, 0x80},  // mov -128(%rsp),%rax
      {0x4b, 0x8d, 0x04, 0x0f},        // lea (%r15,%r9),%rax
  };
  std::vector<RunEntry> runs;
  for (std::vector<uint8_t>& look : looks) {
    look.insert(look.end(), tail.begin(), tail.end());
    runs.push_back({lab.Raw(look), 0, 0, 0, 0});
  }
  // A run that clears them, then the same again: every run begins with the saved state.
  // vpxorq %zmm31,%zmm31,%zmm31; kxorq %k5,%k5,%k5
  runs.push_back(
      {lab.Raw({0x62, 0x01, 0x85, 0x40, 0xef, 0xff, 0xc4, 0xe1, 0xd4, 0x47, 0xed}), 0, 0, 0, 0});
  const std::vector<RunEntry> once = runs;
  runs.insert(runs.end(), once.begin(), once.end());
  lab.Plan(site, 1, runs);
  lab.Arm(site);
  loop_state(image.data(), 3);
  ASSERT_EQ(lab.site(site).last_outcome, kOutcomeDone);
  for (uint32_t run = 0; run < runs.size(); ++run) {
    if (run % 5 == 4) continue;
    EXPECT_EQ(lab.result(run, 0).iterations, expected[run % 5]) << run;
  }
}

TEST_F(PayloadTest, CensusCountsEntriesOfThread) {
  std::vector<double> v = Ramp(10);
  SelfHosted lab;
  uint32_t site = lab.Install(kSum);
  lab.SetMode(site, kModeCensus);
  for (int i = 0; i < 37; ++i) loop_sum(v.data(), 10);
  EXPECT_EQ(lab.site(site).entries, 37u);
  uint64_t counted = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    if (lab.record(i).tid == static_cast<uint32_t>(gettid())) counted = lab.record(i).entries[site];
  }
  EXPECT_EQ(counted, 37u);
}

TEST_F(PayloadTest, LiveTimingRecordsUntilItsLimit) {
  std::vector<double> v = Ramp(10000);
  SelfHosted lab;
  uint32_t site = lab.Install(kSum);
  lab.SetMode(site, kModeLive);
  for (int i = 0; i < 120; ++i) EXPECT_EQ(loop_sum(v.data(), 10000), 50005000.0);
  EXPECT_EQ(lab.region().live_next, 100u);
  EXPECT_EQ(lab.site(site).mode, uint32_t{kModeIdle});
  // 10000 dependent additions take at least 2 cycles each, whatever the TSC's pace is: at least one tick.
  EXPECT_GT(lab.live(50).end - lab.live(50).start, 10000u);
  EXPECT_EQ(lab.live(50).sequence, 51u);
}

TEST_F(PayloadTest, ShadowCountsIterationsAndLeavesMemoryAlone) {
  std::vector<int64_t> v(1000, 5);
  SelfHosted lab;
  uint32_t site = lab.Install(kUpdate);
  uint64_t ref = lab.Ref(kUpdate), count = lab.Count(kUpdate), empty = lab.Raw({});
  lab.Plan(site, 1,
           {{ref, 0, 0, 0, 0}, {count, 0, 0, 0, 0}, {ref, 0, 0, 0, 0}, {empty, 0, 0, 0, 0}});
  lab.Arm(site);
  loop_update(v.data(), 1000);
  EXPECT_EQ(lab.site(site).last_outcome, kOutcomeDone);
  EXPECT_EQ(lab.site(site).generation_done, 1u);
  EXPECT_EQ(lab.result(1, 0).iterations, 1000u);
  EXPECT_EQ(lab.result(0, 0).iterations, 0u);
  EXPECT_GT(lab.result(0, 0).cycles, 1000u);
  EXPECT_LT(lab.result(3, 0).cycles, 1000u);  // the probe: 50-150 ticks
  for (uint32_t run = 0; run < 4; ++run) EXPECT_EQ(lab.result(run, 0).status, uint32_t{kRunOk});
  for (int64_t x : v) ASSERT_EQ(x, 8);  // the rank's own pass, and nothing else
  printf("probe %lu ticks, fork %lu, pause %lu\n", lab.result(3, 0).cycles,
         lab.site(site).fork_ticks, lab.site(site).pause_ticks);
}

TEST_F(PayloadTest, RestoreGivesEveryRunTheSameMemory) {
  // Finds the first zero: a[i] -= ... would be simpler to see in values, so: count passes until the word is 8 (5 + 3).
  std::vector<int64_t> v(512, 5);
  SelfHosted lab;
  uint32_t site = lab.Install(kUpdate);
  uint64_t ref = lab.Ref(kUpdate);
  // mov (%rdi),%rax; mov %rax,%gs:0: "iterations" reports the first word of the array.
  uint64_t look = lab.Raw({0x48, 0x8b, 0x07, 0x65, 0x48, 0x89, 0x04, 0x25, 0, 0, 0, 0});
  ShadowPlan& plan = lab.Plan(site, 1,
                              {{ref, 0, 0, 0, 0},
                               {look, 0, 0, 0, 0},
                               {ref, 0, 0, 0, 0},
                               {look, 0, 0, 0, 0},
                               {look, 0, kRunRestore, 0, 0}});
  plan.restore_count = 1;
  plan.restores[0] = {reinterpret_cast<uint64_t>(v.data()), v.size() * 8};
  lab.Arm(site);
  loop_update(v.data(), 512);
  EXPECT_EQ(lab.result(1, 0).iterations, 8u);
  EXPECT_EQ(lab.result(3, 0).iterations, 11u);  // drifted
  EXPECT_EQ(lab.result(4, 0).iterations, 5u);   // as the rank had it
  EXPECT_EQ(v[0], 8);
}

TEST_F(PayloadTest, CountdownChoosesTheEntry) {
  std::vector<double> v = Ramp(10);
  SelfHosted lab;
  uint32_t site = lab.Install(kSum);
  lab.Plan(site, 1, {{lab.Ref(kSum), 0, 0, 0, 0}});
  lab.Arm(site, 5);
  for (int i = 0; i < 4; ++i) loop_sum(v.data(), 10);
  EXPECT_EQ(lab.site(site).shadows, 0u);
  loop_sum(v.data(), 10);
  EXPECT_EQ(lab.site(site).shadows, 1u);
}

TEST_F(PayloadTest, FaultEndsOneRunAndIsReported) {
  std::vector<double> v = Ramp(10);
  SelfHosted lab;
  uint32_t site = lab.Install(kSum);
  uint64_t bad = lab.Raw({0x48, 0xa1, 0x10, 0, 0, 0, 0, 0, 0, 0});  // movabs 0x10,%rax
  uint64_t count = lab.Count(kSum);
  lab.Plan(site, 1, {{count, 0, 0, 0, 0}, {bad, 0, 0, 0, 0}, {count, 0, 0, 0, 0}});
  lab.Arm(site);
  EXPECT_EQ(loop_sum(v.data(), 10), 55.0);
  EXPECT_EQ(lab.site(site).last_outcome, kOutcomeDone);
  EXPECT_EQ(lab.result(1, 0).status, uint32_t{kRunFaulted});
  EXPECT_EQ(lab.child().fault_count, 1u);
  EXPECT_EQ(lab.child().fault.signal, uint32_t{SIGSEGV});
  EXPECT_EQ(lab.child().fault.address, 0x10u);
  EXPECT_EQ(lab.child().fault.pc, bad);
  EXPECT_EQ(lab.child().fault.run, 1u);
  EXPECT_EQ(lab.result(2, 0).iterations, 10u);
}

TEST_F(PayloadTest, ManyFaultsEndTheShadow) {
  std::vector<double> v = Ramp(10);
  SelfHosted lab;
  uint32_t site = lab.Install(kSum);
  uint64_t bad = lab.Raw({0x0f, 0x0b});  // ud2
  lab.Plan(site, 1, std::vector<RunEntry>(20, RunEntry{bad, 0, 0, 0, 0}));
  lab.Arm(site);
  EXPECT_EQ(loop_sum(v.data(), 10), 55.0);
  EXPECT_EQ(lab.site(site).last_outcome, kOutcomeFaulted);
  EXPECT_EQ(lab.child().fault.signal, uint32_t{SIGILL});
  EXPECT_EQ(lab.child().fault_count, 8u);
}

TEST_F(PayloadTest, EndlessRunIsEndedAndNamed) {
  std::vector<double> v = Ramp(10);
  SelfHosted lab;
  uint32_t site = lab.Install(kSum);
  ShadowPlan& plan =
      lab.Plan(site, 1, {{lab.Ref(kSum), 0, 0, 0, 0}, {lab.Raw({0xeb, 0xfe}), 0, 0, 0, 0}});
  plan.shadow_ns = 100000000;
  lab.Arm(site);
  uint64_t start = ReadTicks();
  EXPECT_EQ(loop_sum(v.data(), 10), 55.0);
  EXPECT_LT(ReadTicks() - start, 2000000000u);  // under a second at any TSC pace from 2 GHz
  EXPECT_EQ(lab.site(site).last_outcome, kOutcomeWatchdog);
  EXPECT_EQ(lab.child().current_run, 1u);
  EXPECT_EQ(lab.result(0, 0).status, uint32_t{kRunOk});
}

// A copy that makes itself deaf to its own watchdog: only the rank's limit is left.
TEST_F(PayloadTest, DeafShadowIsKilledByTheRank) {
  std::vector<double> v = Ramp(10);
  SelfHosted lab;
  uint32_t site = lab.Install(kSum);
  // rt_sigprocmask(SIG_SETMASK, &~0, 0, 8): push $-1; mov %rsp,%rsi; mov $2,%edi; xor %edx,%edx; mov $8,%r10d; mov $14,%eax; syscall
  uint64_t deaf =
      lab.Raw({0x6a, 0xff, 0x48, 0x89, 0xe6, 0xbf, 2, 0, 0, 0,    0x31, 0xd2, 0x41, 0xba,
               8,    0,    0,    0,    0xb8, 14,   0, 0, 0, 0x0f, 0x05, 0xeb, 0xfe});
  lab.Plan(site, 1, {{deaf, 0, 0, 0, 0}}).shadow_ns = 100000000;
  lab.Arm(site);
  EXPECT_EQ(loop_sum(v.data(), 10), 55.0);
  EXPECT_EQ(lab.site(site).last_outcome, kOutcomeKilled);
  EXPECT_EQ(lab.site(site).last_error, SIGKILL);
  EXPECT_EQ(lab.region().orphan, 0u);
}

TEST_F(PayloadTest, ShadowThatIsGoneIsNoticed) {
  std::vector<double> v = Ramp(10);
  SelfHosted lab;
  uint32_t site = lab.Install(kSum);
  uint64_t leave = lab.Raw({0xbf, 7, 0, 0, 0, 0xb8, 231, 0, 0, 0, 0x0f, 0x05});  // exit_group(7)
  lab.Plan(site, 1, {{leave, 0, 0, 0, 0}});
  lab.Arm(site);
  EXPECT_EQ(loop_sum(v.data(), 10), 55.0);
  EXPECT_EQ(lab.site(site).last_outcome, kOutcomeDied);
  EXPECT_EQ(lab.site(site).last_error, 7 << 8);
}

TEST_F(PayloadTest, SharedMemoryStaysUntouched) {
  constexpr size_t kBytes = 8192;
  auto* shared = static_cast<int64_t*>(
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  SelfHosted lab;
  uint32_t site = lab.Install(kUpdate);
  ShadowPlan& plan = lab.Plan(site, 1, {{lab.Ref(kUpdate), 0, 0, 0, 0}});
  plan.protect_count = 1;
  plan.protects[0] = {reinterpret_cast<uint64_t>(shared), kBytes, PROT_READ, 0};
  lab.Arm(site);
  loop_update(shared, 1000);
  EXPECT_EQ(lab.result(0, 0).status, uint32_t{kRunFaulted});
  EXPECT_EQ(lab.child().fault.address, reinterpret_cast<uint64_t>(shared));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(shared[i], 3);  // once, by the rank
  munmap(shared, kBytes);
}

TEST_F(PayloadTest, ShadowMayNotWriteTheRanksPartOfTheRegion) {
  SelfHosted lab;
  uint32_t site = lab.Install(kUpdate);
  std::vector<int64_t> v(4, 0);
  auto victim = reinterpret_cast<uint64_t>(&lab.region().magic);
  std::vector<uint8_t> poke = {
      0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0x48, 0xff, 0x00};  // movabs $victim,%rax; incq (%rax)
  memcpy(poke.data() + 2, &victim, 8);
  lab.Plan(site, 1, {{lab.Raw(poke), 0, 0, 0, 0}});
  lab.Arm(site);
  loop_update(v.data(), 4);
  EXPECT_EQ(lab.region().magic, kShadowMagic);
  EXPECT_EQ(lab.result(0, 0).status, uint32_t{kRunFaulted});
}

TEST_F(PayloadTest, HostilePlansAreRefused) {
  std::vector<double> v = Ramp(10);
  SelfHosted lab;
  uint32_t site = lab.Install(kSum);
  uint64_t ref = lab.Ref(kSum);
  lab.Plan(site, 1, {{ref, 0, 0, 0, 0}}).run_count = kMaxRuns + 1;
  lab.Arm(site);
  loop_sum(v.data(), 10);
  EXPECT_EQ(lab.site(site).last_outcome, kOutcomeSetupFailed);
  EXPECT_EQ(lab.child().error_step, uint32_t{kStepPlan});
  lab.Plan(site, 1, {{ref, 0, 0, 0, 0}}).protect_count = kMaxProtects + 1;
  lab.Arm(site);
  loop_sum(v.data(), 10);
  EXPECT_EQ(lab.child().error_step, uint32_t{kStepPlan});
  lab.Plan(site, 1, {{ref, 0, 0, 0, 0}}).restore_count = kMaxRestores + 1;
  lab.Arm(site);
  loop_sum(v.data(), 10);
  EXPECT_EQ(lab.child().error_step, uint32_t{kStepPlan});
  for (uint32_t team : {0u, 9u, 1000000u}) {
    lab.Plan(site, team, {{ref, 0, 0, 0, 0}});
    lab.Arm(site);
    EXPECT_EQ(loop_sum(v.data(), 10), 55.0);
    EXPECT_EQ(lab.site(site).mode, uint32_t{kModeArmed});  // nobody joined
    lab.SetMode(site, kModeIdle);
  }
}

TEST_F(PayloadTest, StaleHeartbeatPassesThroughAndGoesIdle) {
  std::vector<double> v = Ramp(10);
  SelfHosted lab;
  uint32_t site = lab.Install(kSum);
  lab.Plan(site, 1, {{lab.Ref(kSum), 0, 0, 0, 0}});
  lab.Arm(site);
  lab.region().stale_ticks = 1000;
  EXPECT_EQ(loop_sum(v.data(), 10), 55.0);
  EXPECT_EQ(lab.site(site).shadows, 0u);
  EXPECT_EQ(lab.site(site).mode, uint32_t{kModeIdle});
  EXPECT_EQ(lab.region().stale_entries, 1u);
}

TEST_F(PayloadTest, ForkOfTheApplicationPassesThrough) {
  std::vector<double> v = Ramp(10);
  signal(SIGCHLD, SIG_DFL);
  SelfHosted lab;
  uint32_t site = lab.Install(kSum);
  lab.Plan(site, 1, {{lab.Ref(kSum), 0, 0, 0, 0}});
  lab.Arm(site);
  pid_t pid = fork();
  if (pid == 0) _exit(loop_sum(v.data(), 10) == 55.0 ? 42 : 1);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_EQ(lab.region().foreign_entries, 1u);
  EXPECT_EQ(lab.site(site).shadows, 0u);
  EXPECT_EQ(lab.site(site).mode, uint32_t{kModeArmed});
}

// RLIMIT_NPROC does not bind root, so a process of another user tries.
TEST_F(PayloadTest, ForkThatFailsIsReported) {
  if (geteuid() != 0) GTEST_SKIP() << "SKIPPED: needs another user";
  signal(SIGCHLD, SIG_DFL);
  pid_t pid = fork();
  if (pid == 0) {
    std::vector<double> v = Ramp(10);
    SelfHosted lab;
    uint32_t site = lab.Install(kSum);
    rlimit none = {0, 0};
    setrlimit(RLIMIT_NPROC, &none);
    if (setresuid(65534, 65534, 65534) != 0) _exit(2);
    lab.Plan(site, 1, {{lab.Ref(kSum), 0, 0, 0, 0}});
    lab.Arm(site);
    bool right = loop_sum(v.data(), 10) == 55.0;
    const Site& s = lab.site(site);
    _exit(right && s.last_outcome == kOutcomeForkFailed && s.last_error == EAGAIN ? 42 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST_F(PayloadTest, SoftLimitKeepsWhatWasMeasured) {
  std::vector<double> v = Ramp(100000);
  SelfHosted lab;
  uint32_t site = lab.Install(kSum);
  uint64_t ref = lab.Ref(kSum);
  ShadowPlan& plan = lab.Plan(site, 1, std::vector<RunEntry>(kMaxRuns, RunEntry{ref, 0, 0, 0, 0}));
  plan.soft_ticks = 20000000;  // some milliseconds: a few dozen runs of 100 us
  lab.Arm(site);
  loop_sum(v.data(), 100000);
  EXPECT_EQ(lab.site(site).last_outcome, kOutcomeDone);
  uint32_t done = lab.child().runs_done;
  EXPECT_LT(done, kMaxRuns);
  EXPECT_EQ(lab.result(done, 0).status, uint32_t{kRunNotRun});
}

TEST_F(PayloadTest, ShadowWaitsForTheAgentAndGivesUp) {
  std::vector<double> v = Ramp(10);
  SelfHosted lab;
  uint32_t site = lab.Install(kSum);
  ShadowPlan& plan = lab.Plan(site, 1, {{lab.Ref(kSum), 0, 0, 0, 0}});
  plan.flags = kPlanWaitForAgent;
  plan.agent_wait_ns = 20000000;
  lab.Arm(site);
  EXPECT_EQ(loop_sum(v.data(), 10), 55.0);
  EXPECT_EQ(lab.site(site).last_outcome, kOutcomeSetupFailed);
  EXPECT_EQ(lab.child().error_step, uint32_t{kStepAgent});
}

TEST_F(PayloadTest, FlushToZeroOnlyWhereAsked) {
  double tiny[2] = {4e-320, 4e-320};  // denormal; their sum is denormal
  SelfHosted lab;
  uint32_t site = lab.Install(kSum);
  // addsd (%rdi),%xmm0; movq %xmm0,%rax; mov %rax,%gs:0
  uint64_t look = lab.Raw({0xf2, 0x0f, 0x58, 0x07, 0x66, 0x48, 0x0f, 0x7e, 0xc0, 0x65, 0x48, 0x89,
                           0x04, 0x25, 0, 0, 0, 0});
  lab.Plan(site, 1, {{look, 0, 0, 0, 0}, {look, 0, kRunFtz | kRunDaz, 0, 0}, {look, 0, 0, 0, 0}});
  lab.Arm(site);
  EXPECT_EQ(loop_sum(tiny, 2), 8e-320);
  EXPECT_NE(lab.result(0, 0).iterations, 0u);
  EXPECT_EQ(lab.result(1, 0).iterations, 0u);
  EXPECT_NE(lab.result(2, 0).iterations, 0u);
}

TEST_F(PayloadTest, SelfPointersAreSetBeforeTheRun) {
  std::vector<double> v = Ramp(10);
  SelfHosted lab;
  uint32_t site = lab.Install(kSum);
  // mov %gs:0x1008,%rax; mov (%rax),%rax; mov %rax,%gs:0: follows the word, which points to itself.
  uint64_t follow = lab.Raw({0x65, 0x48, 0x8b, 0x04, 0x25, 0x08, 0x10, 0, 0, 0x48, 0x8b,
                             0,    0x65, 0x48, 0x89, 0x04, 0x25, 0,    0, 0, 0});
  ShadowPlan& plan =
      lab.Plan(site, 1, {{follow, 0, kRunPinned, 1, 1}, {follow, 0, kRunPinned, 0, 0}});
  plan.selves[1] = {kBlockSlots + 8, 0, kBlockSlots + 8};
  lab.Arm(site);
  loop_sum(v.data(), 10);
  uint64_t blocks = reinterpret_cast<uint64_t>(&lab.region()) + BlocksOffset(8);
  EXPECT_EQ((lab.result(0, 0).iterations - blocks) % kThreadBlockBytes, kBlockSlots + 8);
  EXPECT_EQ(lab.result(0, 0).status, uint32_t{kRunOk});
  EXPECT_EQ(lab.result(1, 0).status, uint32_t{kRunFaulted});  // zeroed again
}

TEST_F(PayloadTest, TwoHundredShadowsInARow) {
  std::vector<int64_t> v(64, 0);
  SelfHosted lab;
  uint32_t site = lab.Install(kUpdate);
  uint64_t ref = lab.Ref(kUpdate), count = lab.Count(kUpdate);
  for (int i = 0; i < 200; ++i) {
    lab.Plan(site, 1, {{ref, 0, 0, 0, 0}, {count, 0, kRunCold, 0, 0}}).evict_bytes = 65536;
    lab.Arm(site);
    loop_update(v.data(), 64);
    ASSERT_EQ(lab.site(site).last_outcome, kOutcomeDone) << i;
    ASSERT_EQ(lab.result(1, 0).iterations, 64u);
  }
  EXPECT_EQ(lab.site(site).shadows, 200u);
  for (int64_t x : v) ASSERT_EQ(x, 600);
}

}  // namespace
}  // namespace perfd
