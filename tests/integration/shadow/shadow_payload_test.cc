// The payload in the test's own process, one thread: pass-through, entry count, live timing, shadows and what they tell.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "gmock/gmock.h"
#include "tests/integration/shadow/payload_fixture.h"

namespace perfd::agent {
namespace {

TEST_F(PayloadTest, IdleEntryPassesThrough) {
  std::vector<double> v = Ramp(100);
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
  EXPECT_EQ(loop_sum(v.data(), 1), 1.0);
  EXPECT_EQ(injector.site(site).entries, 0u);
}

TEST_F(PayloadTest, TextIsAsBeforeAfterwards) {
  std::vector<uint8_t> before(loop_sum_header, loop_sum_exit);
  {
    SelfHosted injector;
    injector.Install(kSum);
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
  SelfHosted injector;
  uint32_t site = injector.Install(kState);
  uint64_t ref = injector.Ref(kState);
  for (uint32_t mode : {kModeIdle, kModeEntryCount, kModeArmed, kModeLive, kModeArmed}) {
    if (mode == kModeArmed) {
      injector.Plan(site, 1, {{ref, 0, 0, 0, 0}, {ref, 0, kRunFtz, 0, 0}});
      injector.Arm(site);
    }
    injector.SetMode(site, mode);
    Image image = filled;
    loop_state(&image, 3);
    EXPECT_EQ(memcmp(&image, &expected, sizeof(image)), 0) << "mode " << mode;
  }
  EXPECT_EQ(injector.site(site).shadows, 2u);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeDone);
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
  SelfHosted injector;
  uint32_t site = injector.Install(kState);
  const std::vector<uint8_t> tail = {0x65, 0x48, 0x89, 0x04, 0x25, 0, 0, 0, 0};  // mov %rax,%gs:0
  std::vector<std::vector<uint8_t>> probes = {
      // valignq $7,%zmm31,%zmm31,%zmm30; vmovq %xmm30,%rax
      {0x62, 0x03, 0x85, 0x40, 0x03, 0xf7, 0x07, 0x62, 0x61, 0xfd, 0x08, 0x7e, 0xf0},
      {0xc4, 0xe1, 0xfb, 0x93, 0xc5},  // kmovq %k5,%rax
      {0x48, 0x8b, 0x44, 0x24, 0x80},  // mov -128(%rsp),%rax
      {0x4b, 0x8d, 0x04, 0x0f},        // lea (%r15,%r9),%rax
  };
  std::vector<RunEntry> runs;
  for (std::vector<uint8_t>& probe : probes) {
    probe.insert(probe.end(), tail.begin(), tail.end());
    runs.push_back({injector.Raw(probe), 0, 0, 0, 0});
  }
  // A run that clears them, then the same again: every run begins with the saved state.
  // vpxorq %zmm31,%zmm31,%zmm31; kxorq %k5,%k5,%k5
  runs.push_back({injector.Raw({0x62, 0x01, 0x85, 0x40, 0xef, 0xff, 0xc4, 0xe1, 0xd4, 0x47, 0xed}),
                  0, 0, 0, 0});
  const std::vector<RunEntry> once = runs;
  runs.insert(runs.end(), once.begin(), once.end());
  injector.Plan(site, 1, runs);
  injector.Arm(site);
  loop_state(image.data(), 3);
  ASSERT_EQ(injector.site(site).last_outcome, kOutcomeDone);
  for (uint32_t run = 0; run < runs.size(); ++run) {
    if (run % 5 == 4) continue;
    EXPECT_EQ(injector.result(run, 0).iterations, expected[run % 5]) << run;
  }
}

TEST_F(PayloadTest, CensusCountsEntriesOfThread) {
  std::vector<double> v = Ramp(10);
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  injector.SetMode(site, kModeEntryCount);
  for (int i = 0; i < 37; ++i) loop_sum(v.data(), 10);
  EXPECT_EQ(injector.site(site).entries, 37u);
  uint64_t counted = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    if (injector.record(i).tid == static_cast<uint32_t>(gettid()))
      counted = injector.record(i).entries[site];
  }
  EXPECT_EQ(counted, 37u);
}

TEST_F(PayloadTest, LiveTimingRecordsUntilItsLimit) {
  std::vector<double> v = Ramp(10000);
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  injector.SetMode(site, kModeLive);
  for (int i = 0; i < 120; ++i) EXPECT_EQ(loop_sum(v.data(), 10000), 50005000.0);
  EXPECT_EQ(injector.region().live_next, 100u);
  EXPECT_EQ(injector.site(site).mode, uint32_t{kModeIdle});
  // 10000 dependent additions take at least 2 cycles each, whatever the TSC's pace is: at least one tick.
  EXPECT_GT(injector.live(50).end - injector.live(50).start, 10000u);
  EXPECT_EQ(injector.live(50).sequence, 51u);
}

TEST_F(PayloadTest, ShadowCountsIterationsAndLeavesMemoryAlone) {
  std::vector<int64_t> v(1000, 5);
  SelfHosted injector;
  uint32_t site = injector.Install(kUpdate);
  uint64_t ref = injector.Ref(kUpdate), count = injector.Count(kUpdate), empty = injector.Raw({});
  injector.Plan(site, 1,
                {{ref, 0, 0, 0, 0}, {count, 0, 0, 0, 0}, {ref, 0, 0, 0, 0}, {empty, 0, 0, 0, 0}});
  injector.Arm(site);
  loop_update(v.data(), 1000);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeDone);
  EXPECT_EQ(injector.site(site).generation_done, 1u);
  EXPECT_EQ(injector.result(1, 0).iterations, 1000u);
  EXPECT_EQ(injector.result(0, 0).iterations, 0u);
  EXPECT_GT(injector.result(0, 0).cycles, 1000u);
  EXPECT_LT(injector.result(3, 0).cycles, 1000u);  // the probe: 50-150 ticks
  for (uint32_t run = 0; run < 4; ++run)
    EXPECT_EQ(injector.result(run, 0).status, uint32_t{kRunOk});
  for (int64_t x : v) ASSERT_EQ(x, 8);  // the rank's own pass, and nothing else
  printf("probe %lu ticks, fork %lu, pause %lu\n", injector.result(3, 0).cycles,
         injector.site(site).fork_ticks, injector.site(site).pause_ticks);
}

TEST_F(PayloadTest, RestoreGivesEveryRunTheSameMemory) {
  // Finds the first zero: a[i] -= ... would be simpler to see in values, so: count passes until the word is 8 (5 + 3).
  std::vector<int64_t> v(512, 5);
  SelfHosted injector;
  uint32_t site = injector.Install(kUpdate);
  uint64_t ref = injector.Ref(kUpdate);
  // mov (%rdi),%rax; mov %rax,%gs:0: "iterations" reports the first word of the array.
  uint64_t probe = injector.Raw({0x48, 0x8b, 0x07, 0x65, 0x48, 0x89, 0x04, 0x25, 0, 0, 0, 0});
  ShadowPlan& plan = injector.Plan(site, 1,
                                   {{ref, 0, 0, 0, 0},
                                    {probe, 0, 0, 0, 0},
                                    {ref, 0, 0, 0, 0},
                                    {probe, 0, 0, 0, 0},
                                    {probe, 0, kRunRestore, 0, 0}});
  plan.restore_count = 1;
  plan.restores[0] = {reinterpret_cast<uint64_t>(v.data()), v.size() * 8, kSharedOut, 0};
  injector.Arm(site);
  loop_update(v.data(), 512);
  EXPECT_EQ(injector.result(1, 0).iterations, 8u);
  EXPECT_EQ(injector.result(3, 0).iterations, 11u);  // drifted
  EXPECT_EQ(injector.result(4, 0).iterations, 5u);   // as the rank had it
  EXPECT_EQ(v[0], 8);
}

// Code that stores 9 into the word at `offset` of the array, and code that reports that word as its "iterations".
uint64_t Poke(SelfHosted& injector, uint32_t offset) {
  const auto low = static_cast<uint8_t>(offset), high = static_cast<uint8_t>(offset >> 8);
  return injector.Raw({0x48, 0xc7, 0x87, low, high, 0, 0, 9, 0, 0, 0});
}
uint64_t Peek(SelfHosted& injector, uint32_t offset) {
  const auto low = static_cast<uint8_t>(offset), high = static_cast<uint8_t>(offset >> 8);
  return injector.Raw(
      {0x48, 0x8b, 0x87, low, high, 0, 0, 0x65, 0x48, 0x89, 0x04, 0x25, 0, 0, 0, 0});
}

TEST_F(PayloadTest, LinesThatRunsChangeAreLearntAndBroughtBack) {
  std::vector<int64_t> v(512, 5);
  SelfHosted injector;
  uint32_t site = injector.Install(kUpdate);
  uint64_t ref = injector.Ref(kUpdate);
  // The second line of what is put aside is changed by one run that learns, the third only later.
  uint64_t poke_second = Poke(injector, 64), poke_third = Poke(injector, 128);
  uint64_t peek_first = Peek(injector, 0), peek_second = Peek(injector, 64),
           peek_third = Peek(injector, 128);
  ShadowPlan& plan = injector.Plan(site, 1,
                                   {{ref, 0, kRunRestore | kRunLearn, 0, 0},
                                    {peek_first, 0, 0, 0, 0},
                                    {poke_second, 0, kRunRestore | kRunLearn, 0, 0},
                                    {ref, 0, 0, 0, 0},
                                    {poke_second, 0, 0, 0, 0},
                                    {poke_third, 0, 0, 0, 0},
                                    {peek_first, 0, kRunRestore, 0, 0},
                                    {peek_second, 0, 0, 0, 0},
                                    {peek_third, 0, 0, 0, 0}});
  plan.restore_count = 1;
  plan.restores[0] = {reinterpret_cast<uint64_t>(v.data()), v.size() * 8, 0, 0};
  injector.Arm(site);
  loop_update(v.data(), 8);
  EXPECT_EQ(injector.result(1, 0).iterations, 5u) << "learning brings back at once";
  EXPECT_EQ(injector.result(6, 0).iterations, 5u);
  EXPECT_EQ(injector.result(7, 0).iterations, 5u);
  EXPECT_EQ(injector.result(8, 0).iterations, 9u) << "no run had changed it while they learnt";
  EXPECT_EQ(v[0], 8);
  EXPECT_EQ(v[8], 5);
}

TEST_F(PayloadTest, LinesSideBySideAreNotedAsOne) {
  std::vector<int64_t> v(64, 5);
  SelfHosted injector;
  uint32_t site = injector.Install(kUpdate);
  uint64_t ref = injector.Ref(kUpdate);
  // Three lines, then one that stands alone.
  ShadowPlan& plan = injector.Plan(site, 1,
                                   {{ref, 0, kRunRestore | kRunLearn, 0, 0},
                                    {Poke(injector, 256), 0, kRunRestore | kRunLearn, 0, 0},
                                    {ref, 0, 0, 0, 0},
                                    {Peek(injector, 0), 0, kRunRestore, 0, 0},
                                    {Peek(injector, 64), 0, 0, 0, 0},
                                    {Peek(injector, 184), 0, 0, 0, 0},
                                    {Peek(injector, 256), 0, 0, 0, 0}});
  plan.restore_count = 1;
  plan.restores[0] = {reinterpret_cast<uint64_t>(v.data()), v.size() * 8, 0, 0};
  injector.Arm(site);
  loop_update(v.data(), 24);
  EXPECT_EQ(injector.child().lines.count, 2u);
  for (uint32_t run = 3; run < 7; ++run) EXPECT_EQ(injector.result(run, 0).iterations, 5u) << run;
}

TEST_F(PayloadTest, MoreLinesThanCanBeNotedAreRestoredWhole) {
  std::vector<int64_t> v(size_t{kMaxLines} * 8 + 8, 5);
  SelfHosted injector;
  uint32_t site = injector.Install(kUpdate);
  uint64_t ref = injector.Ref(kUpdate);
  uint64_t poke = Poke(injector, 64), peek = Peek(injector, 64);
  ShadowPlan& plan = injector.Plan(
      site, 1,
      {{ref, 0, kRunRestore | kRunLearn, 0, 0}, {poke, 0, 0, 0, 0}, {peek, 0, kRunRestore, 0, 0}});
  plan.restore_count = 1;
  plan.restores[0] = {reinterpret_cast<uint64_t>(v.data()), v.size() * 8, kSharedOut, 0};
  injector.Arm(site);
  loop_update(v.data(), static_cast<int64_t>(v.size()));
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeDone);
  EXPECT_EQ(injector.result(2, 0).iterations, 5u);
}

TEST_F(PayloadTest, CountdownChoosesTheEntry) {
  std::vector<double> v = Ramp(10);
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  injector.Plan(site, 1, {{injector.Ref(kSum), 0, 0, 0, 0}});
  injector.Arm(site, 5);
  for (int i = 0; i < 4; ++i) loop_sum(v.data(), 10);
  EXPECT_EQ(injector.site(site).shadows, 0u);
  loop_sum(v.data(), 10);
  EXPECT_EQ(injector.site(site).shadows, 1u);
}

TEST_F(PayloadTest, SoftLimitKeepsWhatWasMeasured) {
  std::vector<double> v = Ramp(100000);
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  uint64_t ref = injector.Ref(kSum);
  ShadowPlan& plan =
      injector.Plan(site, 1, std::vector<RunEntry>(kMaxRuns, RunEntry{ref, 0, 0, 0, 0}));
  plan.soft_ticks = 20000000;  // some milliseconds: a few dozen runs of 100 us
  injector.Arm(site);
  loop_sum(v.data(), 100000);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeDone);
  uint32_t done = injector.child().runs_done;
  EXPECT_LT(done, kMaxRuns);
  EXPECT_EQ(injector.result(done, 0).status, uint32_t{kRunNotRun});
}

TEST_F(PayloadTest, FlushToZeroOnlyWhereAsked) {
  double tiny[2] = {4e-320, 4e-320};  // denormal; their sum is denormal
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  // addsd (%rdi),%xmm0; movq %xmm0,%rax; mov %rax,%gs:0
  uint64_t probe = injector.Raw({0xf2, 0x0f, 0x58, 0x07, 0x66, 0x48, 0x0f, 0x7e, 0xc0, 0x65, 0x48,
                                 0x89, 0x04, 0x25, 0, 0, 0, 0});
  injector.Plan(site, 1,
                {{probe, 0, 0, 0, 0}, {probe, 0, kRunFtz | kRunDaz, 0, 0}, {probe, 0, 0, 0, 0}});
  injector.Arm(site);
  EXPECT_EQ(loop_sum(tiny, 2), 8e-320);
  EXPECT_NE(injector.result(0, 0).iterations, 0u);
  EXPECT_EQ(injector.result(1, 0).iterations, 0u);
  EXPECT_NE(injector.result(2, 0).iterations, 0u);
}

TEST_F(PayloadTest, SelfPointersAreSetBeforeTheRun) {
  std::vector<double> v = Ramp(10);
  SelfHosted injector;
  uint32_t site = injector.Install(kSum);
  // mov %gs:0x1008,%rax; mov (%rax),%rax; mov %rax,%gs:0: follows the word, which points to itself.
  uint64_t follow = injector.Raw({0x65, 0x48, 0x8b, 0x04, 0x25, 0x08, 0x10, 0, 0, 0x48, 0x8b,
                                  0,    0x65, 0x48, 0x89, 0x04, 0x25, 0,    0, 0, 0});
  ShadowPlan& plan =
      injector.Plan(site, 1, {{follow, 0, kRunPinned, 1, 1}, {follow, 0, kRunPinned, 0, 0}});
  plan.tables.selves[1] = {kBlockSlots + 8, 0, kBlockSlots + 8};
  injector.Arm(site);
  loop_sum(v.data(), 10);
  uint64_t blocks = reinterpret_cast<uint64_t>(&injector.region()) + BlocksOffset(8);
  EXPECT_EQ((injector.result(0, 0).iterations - blocks) % kThreadBlockBytes, kBlockSlots + 8);
  EXPECT_EQ(injector.result(0, 0).status, uint32_t{kRunOk});
  EXPECT_EQ(injector.result(1, 0).status, uint32_t{kRunFaulted});  // zeroed again
}

}  // namespace
}  // namespace perfd::agent
