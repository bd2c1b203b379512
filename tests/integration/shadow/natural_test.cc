// A shadow that goes on: runs are made where the program itself comes to the loop, and nothing of it is seen in the process.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "tests/integration/shadow/payload_fixture.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kMs = 1'000'000;

// The first run where the shadow was forked, the others where it comes by.
std::vector<RunEntry> Arrivals(uint64_t copy, size_t natural, uint32_t flags = 0) {
  std::vector<RunEntry> runs(natural + 1, {copy, 0, kRunNatural | flags, 0, 0});
  runs.front().flags = 0;
  return runs;
}

ShadowPlan& GoingOn(SelfHosted& injector, uint32_t site, uint32_t team,
                    const std::vector<RunEntry>& runs) {
  ShadowPlan& plan = injector.Plan(site, team, runs);
  plan.flags |= kPlanNatural;
  plan.tables.stretch_ns = 500 * kMs;
  return plan;
}

// Two threads with a barrier of their own behind each round.
template <typename F>
void TwoInStep(int64_t rounds, F round) {
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, nullptr, 2);
  const auto work = [&](size_t member) {
    for (int64_t i = 0; i < rounds; ++i) {
      round(member, i);
      pthread_barrier_wait(&barrier);
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  pthread_barrier_destroy(&barrier);
}

TEST_F(PayloadTest, NaturalRunsAreOfTheInstancesThatTheProgramComesTo) {
  const std::vector<double> v = Ramp(16);
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  GoingOn(injector, site, 1, Arrivals(injector.Count(kSum), 4));
  injector.Arm(site);
  std::array<double, 6> sums{};
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = loop_sum(v.data(), 3 + int64_t(i));
  ASSERT_EQ(injector.site(site).last_outcome, kOutcomeDone);
  for (uint32_t run = 0; run <= 4; ++run) {
    EXPECT_EQ(injector.result(run, 0).status, uint32_t{kRunOk}) << run;
    EXPECT_EQ(injector.result(run, 0).iterations, 3u + run) << run;
  }
  EXPECT_EQ(sums, (std::array<double, 6>{6, 10, 15, 21, 28, 36}));
  EXPECT_EQ(injector.site(site).mode, uint32_t{kModeIdle});
  EXPECT_EQ(injector.region().foreign_entries, 0u);
}

TEST_F(PayloadTest, AShadowThatGoesOnEndsWhereTheProgramAsksForMore) {
  const std::vector<double> v = Ramp(16);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  GoingOn(injector, site, 1, Arrivals(injector.Count(kSum), 4));
  injector.Arm(site);
  ssize_t written = 0;
  double sum = 0;
  for (int64_t i = 0; i < 5; ++i) {
    sum += loop_sum(v.data(), 3 + i);
    if (i == 2) written += write(ends[1], "x", 1);
  }
  EXPECT_EQ(sum, 6 + 10 + 15 + 21 + 28);
  EXPECT_EQ(written, 1);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeTrapped);
  EXPECT_EQ(injector.child().trap.call, 1u);
  EXPECT_EQ(injector.result(2, 0).status, uint32_t{kRunOk});
  EXPECT_EQ(injector.result(3, 0).status, uint32_t{kRunNotRun});
  EXPECT_EQ(injector.child().current_run, 2u) << "no run is to blame";
  char read_back[4];
  EXPECT_EQ(read(ends[0], read_back, sizeof(read_back)), 1) << "only the rank has written";
  close(ends[0]);
  close(ends[1]);
}

TEST_F(PayloadTest, ALoopThatUpdatesInPlaceGoesOnFromSaneValues) {
  std::vector<int64_t> v(8, 1);
  SelfHosted injector;
  const uint32_t site = injector.Install(kUpdate);
  // movq $-1,(%rdi): a variant that leaves garbage
  const uint64_t garbage = injector.Raw({0x48, 0xc7, 0x07, 0xff, 0xff, 0xff, 0xff});
  std::vector<RunEntry> runs = Arrivals(garbage, 3, kRunRestore);
  ShadowPlan& plan = GoingOn(injector, site, 1, runs);
  plan.restore_count = 1;
  plan.restores[0] = {reinterpret_cast<uint64_t>(v.data()), 64, kSharedOut, 0};
  injector.Arm(site);
  bool sane = true;
  for (int i = 0; i < 5; ++i) {
    loop_update(v.data(), 8);
    sane = sane && v[0] > 0;
    // In the shadow only: nobody comes to the loop any more, and its timer ends it.
    // NOLINTNEXTLINE(bugprone-infinite-loop): its timer ends the process
    while (!sane) asm volatile("pause");
  }
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeDone);
  EXPECT_EQ(v, std::vector<int64_t>(8, 16));
}

TEST_F(PayloadTest, AStretchHasABound) {
  const std::vector<double> v = Ramp(16);
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  GoingOn(injector, site, 1, Arrivals(injector.Ref(kSum), 4)).tables.stretch_ns = 40 * kMs;
  injector.Arm(site);
  const pid_t own = getpid();
  double sum = loop_sum(v.data(), 3);
  const uint64_t begin = ReadTicks();
  // The shadow is another process, and cannot be told so: it asks.
  while (getpid() != own && ReadTicks() - begin < uint64_t{1} << 36) asm volatile("pause");
  sum += loop_sum(v.data(), 4);
  EXPECT_EQ(sum, 16);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeWatchdog);
  EXPECT_EQ(injector.result(0, 0).status, uint32_t{kRunOk});
  EXPECT_EQ(injector.result(1, 0).status, uint32_t{kRunNotRun});
}

TEST_F(PayloadTest, ATeamComesToTheLoopThroughItsOwnBarriers) {
  const std::vector<double> v = Ramp(4096);
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  GoingOn(injector, site, 2, Arrivals(injector.Count(kSum), 5)).gather_ns = 200 * kMs;
  injector.Arm(site);
  std::array<double, 2> sums{};
  TwoInStep(8, [&](size_t member, int64_t i) {
    sums[member] += loop_sum(v.data() + 2048 * member, 1000 + i);
  });
  ASSERT_EQ(injector.site(site).last_outcome, kOutcomeDone);
  for (uint32_t run = 0; run <= 5; ++run) {
    for (uint32_t member : {0u, 1u}) {
      EXPECT_EQ(injector.result(run, member).status, uint32_t{kRunOk}) << run;
      EXPECT_EQ(injector.result(run, member).iterations, 1000u + run) << run;
    }
  }
  double expected = 0;
  for (int64_t i = 0; i < 8; ++i)
    for (int64_t k = 0; k < 1000 + i; ++k) expected += double(1 + k);
  EXPECT_EQ(sums[0], expected);
}

TEST_F(PayloadTest, ArrivalsPassUntilTheShadowIsWarm) {
  const std::vector<double> v = Ramp(16);
  for (const uint64_t warm_ticks : {uint64_t{1}, uint64_t{2'000'000}}) {
    SelfHosted injector;
    const uint32_t site = injector.Install(kSum);
    GoingOn(injector, site, 1, Arrivals(injector.Count(kSum), 3)).tables.warm_ticks = warm_ticks;
    injector.Arm(site);
    double sum = 0, expected = 0;
    // Few passes, so that arrivals are many; each instance has its own number in the pattern 3, 4 ... 15, 3 ...
    const auto passes = [](int64_t i) { return 3 + i % 13; };
    for (int64_t i = 0; i < 200'000; ++i) {
      sum += loop_sum(v.data(), passes(i));
      expected += static_cast<double>(passes(i) * (passes(i) + 1)) / 2;
    }
    ASSERT_EQ(injector.site(site).last_outcome, kOutcomeDone);
    EXPECT_EQ(sum, expected);
    EXPECT_EQ(injector.result(0, 0).iterations, 3u) << "the fork's own instance";
    const uint64_t first = injector.result(1, 0).iterations;
    for (uint32_t run = 2; run <= 3; ++run)
      EXPECT_EQ(injector.result(run, 0).iterations, (first + run - 4) % 13 + 3)
          << "one after another";
    const uint64_t waited = injector.result(1, 0).start - injector.child().ready_tsc;
    if (warm_ticks == 1) {
      EXPECT_EQ(first, 4u) << "warm at once";
    } else {
      EXPECT_GE(waited, warm_ticks);
    }
  }
}

TEST_F(PayloadTest, ATeamInStepBeginsAtTheSameArrival) {
  const std::vector<double> v = Ramp(4096);
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  ShadowPlan& plan = GoingOn(injector, site, 2, Arrivals(injector.Count(kSum), 3));
  plan.gather_ns = 200 * kMs;
  plan.tables.warm_ticks = 2'000'000;
  injector.Arm(site);
  TwoInStep(3000,
            [&](size_t member, int64_t i) { loop_sum(v.data() + 2048 * member, 1 + i % 1000); });
  ASSERT_EQ(injector.site(site).last_outcome, kOutcomeDone);
  for (uint32_t run = 1; run <= 3; ++run) {
    EXPECT_EQ(injector.result(run, 0).status, uint32_t{kRunOk}) << run;
    EXPECT_EQ(injector.result(run, 0).iterations, injector.result(run, 1).iterations) << run;
  }
  EXPECT_GE(injector.result(1, 0).start - injector.child().ready_tsc, plan.tables.warm_ticks);
}

// Of a private mapping of a file, reading brings the pages into memory. What may not be read is passed over.
TEST_F(PayloadTest, EachPageIsReadOnceBeforeTheRuns) {
  const std::vector<double> v = Ramp(16);
  constexpr size_t kPages = 3000, kBytes = kPages * 4096;
  char name[] = "/var/tmp/perfd-read-once-XXXXXX";
  const int file = mkstemp(name);
  ASSERT_GE(file, 0);
  unlink(name);
  const std::vector<char> ones(kBytes, 1);
  ASSERT_EQ(write(file, ones.data(), kBytes), static_cast<ssize_t>(kBytes));
  ASSERT_EQ(fsync(file), 0);
  ASSERT_EQ(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto resident = [memory] {
    std::vector<unsigned char> pages(kPages);
    EXPECT_EQ(mincore(memory, kBytes, pages.data()), 0);
    return std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; });
  };
  const bool dropped = resident() == 0;  // not where the file system is memory
  ASSERT_EQ(mprotect(static_cast<char*>(memory) + kBytes - 4096, 4096, PROT_NONE), 0);
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  ShadowPlan& plan = injector.Plan(site, 1, {{injector.Count(kSum), 0, 0, 0, 0}});
  plan.shadow_ns = 4'000 * kMs;
  plan.restores[0] = {reinterpret_cast<uint64_t>(memory) + 8, kBytes - 8, kSharedOut, 0};
  plan.memory.read_count = 1;
  injector.Arm(site);
  EXPECT_EQ(loop_sum(v.data(), 3), 6);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeDone);
  EXPECT_GE(resident(), dropped ? static_cast<int64_t>(kPages) - 512 : 0)
      << "all but the piece that may not be read";
  EXPECT_EQ(munmap(memory, kBytes), 0);
  close(file);
}

}  // namespace
}  // namespace perfd::agent
