// Recovery mode in the test's own process: copies run in the live thread before the loop, which must not notice.
#include <fenv.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "tests/integration/shadow/recovery_fixture.h"

namespace perfd::agent {
namespace {

uint16_t ControlWord() {
  uint16_t word;
  asm volatile("fnstcw %0" : "=m"(word));
  return word;
}
uint16_t StatusWord() {
  uint16_t word;
  asm volatile("fnstsw %0" : "=m"(word));
  return word;
}

// Overwrites every register but the stack pointer, the flags, the vector and mask registers and the x87 stack, and raises the
// floating-point flag of an invalid operation.
const std::vector<uint8_t> kClobber = {
    0xfd, 0xf9, 0x48, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff, 0x48, 0xc7, 0xc3, 0xff, 0xff, 0xff, 0xff,
    0x48, 0xc7, 0xc1, 0xff, 0xff, 0xff, 0xff, 0x48, 0xc7, 0xc2, 0xff, 0xff, 0xff, 0xff, 0x48, 0xc7,
    0xc6, 0xff, 0xff, 0xff, 0xff, 0x48, 0xc7, 0xc7, 0xff, 0xff, 0xff, 0xff, 0x48, 0xc7, 0xc5, 0xff,
    0xff, 0xff, 0xff, 0x49, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff, 0x49, 0xc7, 0xc1, 0xff, 0xff, 0xff,
    0xff, 0x49, 0xc7, 0xc2, 0xff, 0xff, 0xff, 0xff, 0x49, 0xc7, 0xc3, 0xff, 0xff, 0xff, 0xff, 0x49,
    0xc7, 0xc4, 0xff, 0xff, 0xff, 0xff, 0x49, 0xc7, 0xc5, 0xff, 0xff, 0xff, 0xff, 0x49, 0xc7, 0xc6,
    0xff, 0xff, 0xff, 0xff, 0x49, 0xc7, 0xc7, 0xff, 0xff, 0xff, 0xff, 0xd9, 0xeb, 0x62, 0x03, 0x05,
    0x40, 0x25, 0xff, 0xff, 0xc5, 0xfc, 0x77, 0xc4, 0xe1, 0xfc, 0x46, 0xc8, 0xc4, 0xe1, 0xfc, 0x46,
    0xf8, 0x0f, 0x57, 0xc0, 0xf3, 0x0f, 0x5e, 0xc0};

TEST_F(RecoveryTest, EverythingLiveAtTheEntryComesBack) {
  if (!__builtin_cpu_supports("avx512bw")) GTEST_SKIP() << "SKIPPED: no AVX-512";
  struct Image {
    uint8_t bytes[2304];
  };
  Image filled;
  for (size_t i = 0; i < sizeof(filled.bytes); ++i)
    filled.bytes[i] = static_cast<uint8_t>(i * 7 + 1);
  Image expected = filled;
  loop_state(&expected, 3);
  const uint32_t site = injector_.Install(kState);
  const uint64_t clobber = injector_.Raw(kClobber);
  Begin(site, {injector_.Ref(kState), clobber, injector_.Raw({})}, 30);
  _mm_setcsr(0x9fa0);  // flush to zero; an inexact result was noted
  const uint16_t control = ControlWord(), status = StatusWord();
  for (int i = 0; i < 40; ++i) {
    Image image = filled;
    loop_state(&image, 3);
    ASSERT_EQ(memcmp(&image, &expected, sizeof(image)), 0) << "entry " << i;
    ASSERT_EQ(_mm_getcsr(), 0x9fa0u) << i;
    ASSERT_EQ(ControlWord(), control) << i;
    ASSERT_EQ(StatusWord(), status) << i;
  }
  _mm_setcsr(0x1f80);
  EXPECT_EQ(Runs(site), 30u);
  for (uint32_t slot = 0; slot < 30; ++slot) {
    EXPECT_GT(Result(slot).cycles, 0u) << slot;
    EXPECT_GT(Result(slot).original, 0u) << slot;
  }
  EXPECT_EQ(injector_.site(site).shadows, 0u) << "nothing was forked";
  ExpectNobodyInside();
}

TEST_F(RecoveryTest, AnEntryBudgetEndsIt) {
  std::vector<double> v = Ramp(100);
  const uint32_t site = injector_.Install(kSum);
  const ShadowPlan& plan = Begin(site, {injector_.Ref(kSum)}, 7);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
  EXPECT_EQ(injector_.site(site).mode, uint32_t{kModeRecovery});
  EXPECT_NE(injector_.site(site).generation_done, plan.generation);
  EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
  EXPECT_EQ(injector_.site(site).mode, uint32_t{kModeIdle});
  EXPECT_EQ(injector_.site(site).generation_done, plan.generation);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
  EXPECT_EQ(injector_.site(site).recoveries, 7u);
  EXPECT_EQ(Result(7).generation, 0u);
  ExpectNobodyInside();
}

TEST_F(RecoveryTest, ABudgetOfTimeEndsIt) {
  std::vector<double> v = Ramp(100);
  const uint32_t site = injector_.Install(kSum);
  Begin(site, {injector_.Ref(kSum)}, 1000).recovery.most_ticks = 1;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
  EXPECT_EQ(injector_.site(site).recoveries, 1u);
  EXPECT_GE(Result(0).added, Result(0).cycles);
}

TEST_F(RecoveryTest, RunsInTurnCountedAndTimed) {
  std::vector<double> v = Ramp(50);
  const uint32_t site = injector_.Install(kSum);
  Begin(site, {injector_.Raw({}), injector_.Count(kSum), injector_.Ref(kSum)}, 30);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(loop_sum(v.data(), 50), 1275.0);
  uint64_t empty = ~uint64_t{0}, ref = ~uint64_t{0};
  for (uint32_t slot = 0; slot < 30; ++slot) {
    const RecoveryResult& result = Result(slot);
    EXPECT_EQ(result.turn, slot);
    EXPECT_EQ(result.distance, 49u);
    EXPECT_EQ(result.iterations, slot % 3 == 1 ? 50u : 0u);
    EXPECT_EQ(result.tid, static_cast<uint32_t>(gettid()));
    if (slot % 3 == 0) empty = std::min(empty, result.cycles);
    if (slot % 3 == 2) ref = std::min(ref, result.cycles);
  }
  EXPECT_GT(ref, empty) << "50 dependent additions";
  printf("empty %lu, REF %lu, loop itself %lu, added %lu ticks\n", empty, ref, Result(29).original,
         Result(29).added);
}

TEST_F(RecoveryTest, InstancesOfOneLengthHaveTheirOwnTurns) {
  std::vector<double> v = Ramp(50);
  const uint32_t site = injector_.Install(kSum);
  Begin(site, {injector_.Raw({}), injector_.Count(kSum)}, 24);
  for (int i = 0; i < 12; ++i) {
    loop_sum(v.data(), 50);
    loop_sum(v.data(), 20 + i % 2);
  }
  std::map<uint64_t, uint32_t> turns;
  for (uint32_t slot = 0; slot < 24; ++slot) {
    const RecoveryResult& result = Result(slot);
    EXPECT_EQ(result.turn, turns[result.distance]++);
    EXPECT_EQ(result.iterations, result.turn % 2 == 1 ? result.distance + 1 : 0);
  }
  EXPECT_EQ(turns, (std::map<uint64_t, uint32_t>{{49, 12}, {19, 6}, {20, 6}}));
}

TEST_F(RecoveryTest, EntriesTooFarFromTheirEndPassThrough) {
  std::vector<double> v = Ramp(100);
  const uint32_t site = injector_.Install(kSum);
  Begin(site, {injector_.Ref(kSum)}, 100).recovery.most_distance = 9;
  EXPECT_EQ(loop_sum(v.data(), 11), 66.0);
  EXPECT_EQ(injector_.site(site).recoveries, 0u);
  EXPECT_EQ(injector_.site(site).recovery_skips, 1u);
  EXPECT_EQ(loop_sum(v.data(), 10), 55.0);
  EXPECT_EQ(injector_.site(site).recoveries, 1u);
  for (int i = 0; i < 4; ++i) loop_sum(v.data(), 100);
  EXPECT_EQ(injector_.site(site).mode, uint32_t{kModeIdle}) << "they are counted, too";
  ExpectNobodyInside();
}

TEST_F(RecoveryTest, AThreadTellsOnlySoManyLengthsApart) {
  std::vector<double> v = Ramp(100);
  const uint32_t site = injector_.Install(kSum);
  Begin(site, {injector_.Ref(kSum)}, 100);
  for (int n = 1; n <= static_cast<int>(kMaxStrata); ++n) loop_sum(v.data(), n);
  EXPECT_EQ(injector_.site(site).recovery_skips, 0u);
  loop_sum(v.data(), kMaxStrata + 1);
  EXPECT_EQ(injector_.site(site).recovery_skips, 1u);
  loop_sum(v.data(), 1);
  EXPECT_EQ(injector_.site(site).recoveries, kMaxStrata + 1);
}

TEST_F(RecoveryTest, AStaleHeartbeatPassesThrough) {
  std::vector<double> v = Ramp(100);
  const uint32_t site = injector_.Install(kSum);
  Begin(site, {injector_.Ref(kSum)}, 100);
  injector_.region().stale_ticks = 1000;
  injector_.region().heartbeat_ticks = ReadTicks() - 2000;
  EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
  EXPECT_EQ(injector_.site(site).recoveries, 0u);
  EXPECT_EQ(injector_.region().stale_entries, 1u);
  EXPECT_EQ(injector_.site(site).mode, uint32_t{kModeIdle});
}

// Only plans for recovery are obeyed: a mode alone, or a plan made for shadows, runs nothing in the rank.
TEST_F(RecoveryTest, NothingRunsWithoutAPlanForIt) {
  std::vector<double> v = Ramp(100);
  const uint32_t site = injector_.Install(kSum);
  const uint64_t ref = injector_.Ref(kSum);
  injector_.SetMode(site, kModeRecovery);
  EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
  EXPECT_EQ(injector_.site(site).recoveries, 0u) << "no plan at all";
  injector_.Plan(site, 1, {{ref, 0, kRunInSitu, 0, 0}});
  EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
  EXPECT_EQ(injector_.site(site).recoveries, 0u) << "a plan for shadows";
  Begin(site, {ref}, 100).runs[0].flags = 0;
  EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
  EXPECT_EQ(injector_.site(site).recoveries, 0u) << "a copy that may not";
  Begin(site, {ref}, 100).site = site + 1;
  EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
  EXPECT_EQ(injector_.site(site).recoveries, 0u) << "another loop's";
  Begin(site, {ref}, 100);
  loop_sum(v.data(), 100);
  EXPECT_EQ(injector_.site(site).recoveries, 1u) << "the same with everything right";
  ExpectNobodyInside();
}

TEST_F(RecoveryTest, UnmaskedExceptionsOfTheProgramStayItsOwn) {
  std::vector<double> v = Ramp(100);
  const uint32_t site = injector_.Install(kSum);
  // xorps %xmm0,%xmm0; divss %xmm0,%xmm0
  Begin(site, {injector_.Raw({0x0f, 0x57, 0xc0, 0xf3, 0x0f, 0x5e, 0xc0})}, 10);
  feclearexcept(FE_ALL_EXCEPT);
  feenableexcept(FE_INVALID | FE_DIVBYZERO);
  const unsigned csr = _mm_getcsr();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
  EXPECT_EQ(_mm_getcsr(), csr);
  EXPECT_EQ(fegetexcept(), FE_INVALID | FE_DIVBYZERO);
  EXPECT_EQ(fetestexcept(FE_INVALID), 0);
  fedisableexcept(FE_ALL_EXCEPT);
  EXPECT_EQ(Runs(site), 10u);
}

TEST_F(RecoveryTest, GsOfTheProgramComesBack) {
  std::vector<double> v = Ramp(100);
  const uint32_t site = injector_.Install(kSum);
  constexpr int kSetGs = 0x1001, kGetGs = 0x1004;
  uint64_t gs = 0;
  syscall(SYS_arch_prctl, kSetGs, 0x123456789000);
  for (uint32_t flags : {injector_.region().flags, 0u}) {  // by instruction, and by system call
    injector_.region().flags = flags;
    Begin(site, {injector_.Count(kSum)}, 10);
    EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
    syscall(SYS_arch_prctl, kGetGs, &gs);
    EXPECT_EQ(gs, 0x123456789000u);
    EXPECT_EQ(Result(0).iterations, 100u);
  }
  syscall(SYS_arch_prctl, kSetGs, 0);
}

TEST_F(RecoveryTest, ThreadsDoNotWaitForEachOther) {
  const uint32_t site = injector_.Install(kSum);
  Begin(site, {injector_.Raw({}), injector_.Ref(kSum)}, 600);
  auto work = [&](int seed) {
    std::vector<double> v(64, seed);
    for (int i = 0; i < 500; ++i) ASSERT_EQ(loop_sum(v.data(), 64), 64.0 * seed);
  };
  std::thread a(work, 2), b(work, 3);
  a.join();
  b.join();
  std::map<uint32_t, std::set<uint32_t>> turns;
  for (uint32_t slot = 0; slot < 600; ++slot) {
    EXPECT_TRUE(turns[Result(slot).tid].insert(Result(slot).turn).second) << slot;
    EXPECT_GT(Result(slot).cycles, 0u);
  }
  EXPECT_LE(turns.size(), 2u);
  for (const auto& [tid, seen] : turns) EXPECT_EQ(*seen.rbegin() + 1, seen.size()) << tid;
  EXPECT_EQ(injector_.site(site).mode, uint32_t{kModeIdle});
  EXPECT_EQ(injector_.region().busy, 0u);
  ExpectNobodyInside();
}

// After a recovery the same thread still takes part in shadows and live timing.
TEST_F(RecoveryTest, OtherModesWorkAfterwards) {
  std::vector<double> v = Ramp(100);
  const uint32_t site = injector_.Install(kSum);
  const uint64_t ref = injector_.Ref(kSum), count = injector_.Count(kSum);
  Begin(site, {ref}, 3);
  for (int i = 0; i < 5; ++i) loop_sum(v.data(), 100);
  injector_.Plan(site, 1, {{ref, 0, 0, 0, 0}, {count, 0, 0, 0, 0}});
  injector_.Arm(site);
  EXPECT_EQ(loop_sum(v.data(), 100), 5050.0);
  EXPECT_EQ(injector_.site(site).last_outcome, kOutcomeDone);
  EXPECT_EQ(injector_.result(1, 0).iterations, 100u);
  Begin(site, {ref}, 3);
  for (int i = 0; i < 5; ++i) loop_sum(v.data(), 100);
  EXPECT_GT(Result(2).cycles, 0u);
  injector_.SetMode(site, kModeLive);
  for (int i = 0; i < 3; ++i) loop_sum(v.data(), 100);
  EXPECT_EQ(injector_.region().live_next, 3u);
  EXPECT_GT(injector_.live(0).end, injector_.live(0).start);
}

}  // namespace
}  // namespace perfd::agent
