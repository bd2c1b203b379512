// Forks that leave memory out, in the test's own process: what the copy lacks, what the rank keeps, and that no mark is ever left.
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "tests/integration/shadow/trim_fixture.h"

namespace perfd::agent {
namespace {

TEST_F(TrimTest, TheShadowLacksItAndTheRankDoesNot) {
  const Ballast ballast;
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  ShadowPlan& plan =
      Plan(injector, site, ballast, {{ballast.At(2), 20 * kMb}, {ballast.At(30), 34 * kMb}});
  const std::vector<std::string> before = ballast.Mappings();
  Run(injector, site);
  EXPECT_EQ(ballast.Mappings(), before) << "cut mappings have to grow together again";
  EXPECT_FALSE(AnyDontFork());
  ASSERT_EQ(injector.site(site).last_outcome, kOutcomeDone);
  EXPECT_EQ(plan.trim.waiting, 1u);
  EXPECT_EQ(plan.trim.marked, 0u);
  EXPECT_EQ(plan.trim.stuck, 0u);
  EXPECT_EQ(injector.result(0, 0).status, uint32_t{kRunOk});
  EXPECT_EQ(injector.result(0, 0).iterations, 7u);
  EXPECT_EQ(injector.result(1, 0).status, uint32_t{kRunFaulted});
  EXPECT_EQ(injector.child().fault.address, ballast.At(20));
  EXPECT_TRUE(ballast.Intact());
  EXPECT_EQ(ChildSees(ballast), 3);
}

TEST_F(TrimTest, AWholeForkHasItAll) {
  const Ballast ballast;
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  Plan(injector, site, ballast, {{ballast.At(2), 20 * kMb}}).flags &= ~uint32_t{kPlanTrim};
  Run(injector, site);
  EXPECT_EQ(injector.result(1, 0).iterations, 7u);
  EXPECT_EQ(injector.plan().trim.waiting, 0u);
}

TEST_F(TrimTest, ManyTimesAndTheMapIsTheSame) {
  const Ballast ballast;
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  std::vector<TrimRange> ranges;
  for (uint64_t i = 0; i < 16; ++i) ranges.push_back({ballast.At(2 + 4 * i % 62), 2 * kMb});
  const std::vector<std::string> before = ballast.Mappings();
  for (int i = 0; i < 20; ++i) {
    Plan(injector, site, ballast, ranges);
    injector.plan().run_count = 1;
    Run(injector, site);
    ASSERT_EQ(injector.site(site).last_outcome, kOutcomeDone);
  }
  EXPECT_EQ(ballast.Mappings(), before);
  EXPECT_EQ(ChildSees(ballast), 3);
}

TEST_F(TrimTest, WithoutTheAgentNothingIsForked) {
  const Ballast ballast;
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  const std::vector<std::string> before = ballast.Mappings();
  struct Case {
    uint32_t answer;
    int32_t step;
  };
  for (const Case& c : {Case{0, kTrimNoAnswer}, Case{kTrimNo, kTrimRefused}}) {
    ShadowPlan& plan = Plan(injector, site, ballast, {{ballast.At(2), 20 * kMb}});
    plan.trim.answer = c.answer == kTrimNo ? TrimAnswer(plan.generation, c.answer) : c.answer;
    Run(injector, site);
    EXPECT_EQ(injector.site(site).last_outcome, kOutcomeNotTrimmed);
    EXPECT_EQ(injector.site(site).last_error, c.step);
  }
  EXPECT_EQ(injector.site(site).shadows, 0u);
  EXPECT_EQ(ballast.Mappings(), before);
}

// To the plan before, that is: its ranges may be half written by now.
TEST_F(TrimTest, AStaleAnswerIsNone) {
  const Ballast ballast;
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  const std::vector<std::string> before = ballast.Mappings();
  ShadowPlan& plan = Plan(injector, site, ballast, {{ballast.At(2), 20 * kMb}});
  plan.trim.answer = TrimAnswer(plan.generation - 1, kTrimGo);
  Run(injector, site);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeNotTrimmed);
  EXPECT_EQ(injector.site(site).last_error, kTrimNoAnswer);
  EXPECT_EQ(injector.site(site).shadows, 0u);
  EXPECT_EQ(ballast.Mappings(), before);
}

// The shadow's own buffers must not come to lie where the loop's arrays were.
TEST_F(TrimTest, WhatIsLeftOutStaysEmpty) {
  const Ballast ballast;
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  ShadowPlan& plan = Plan(injector, site, ballast, {{ballast.At(2), 20 * kMb}});
  plan.run_count = 0;
  for (uint64_t mb : {1, 3, 6, 9, 12, 15, 18, 21})
    plan.runs[plan.run_count++] = {Probe(injector, ballast.At(mb)), 0,
                                   3 << kRunEvictShift | kRunRestore | kRunLearn, 0, 0};
  plan.memory.evict_bytes[3] = 8 * kMb;
  plan.restores[plan.restore_count++] = {ballast.At(24), 8 * kMb, kSharedOut, 0};
  Run(injector, site);
  EXPECT_EQ(injector.result(0, 0).status, uint32_t{kRunOk});
  for (uint32_t run = 1; run < 8; ++run)
    EXPECT_EQ(injector.result(run, 0).status, uint32_t{kRunFaulted}) << run;
  EXPECT_EQ(injector.child().fault.address, ballast.At(3));
  EXPECT_TRUE(ballast.Intact());
}

// The team stands still from the question on, not from the fork.
TEST_F(TrimTest, TheAnswerIsPartOfThePause) {
  const Ballast ballast;
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  ShadowPlan& plan = Plan(injector, site, ballast, {{ballast.At(2), 20 * kMb}});
  plan.shadow_ns = 300'000'000;
  plan.agent_wait_ns = 2'000'000'000;
  plan.trim.answer = 0;
  plan.runs[0].copy = injector.Raw({0xeb, 0xfe});  // for ever
  std::thread agent([&] {
    LeaderAsks(plan);
    usleep(200'000);
    Answer(plan, kTrimGo);
  });
  const uint64_t begin = ReadTicks();
  usleep(10'000);
  const uint64_t per_10_ms = ReadTicks() - begin;
  Run(injector, site);
  agent.join();
  const uint32_t outcome = injector.site(site).last_outcome;
  EXPECT_TRUE(outcome == kOutcomeWatchdog || outcome == kOutcomeKilled) << outcome;
  EXPECT_LT(injector.site(site).pause_ticks, 40 * per_10_ms) << "200 + 7/8 of 300 ms if not";
}

TEST_F(TrimTest, WhatTheKernelRefusesUndoesTheRest) {
  const Ballast ballast;
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  // The last range goes on into a hole behind the memory.
  auto* hole = static_cast<char*>(
      mmap(nullptr, 8 * kMb, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(hole, MAP_FAILED);
  munmap(hole + 4 * kMb, 2 * kMb);
  const std::vector<std::string> before = ballast.Mappings();
  Plan(injector, site, ballast,
       {{ballast.At(2), 20 * kMb}, {reinterpret_cast<uint64_t>(hole), 8 * kMb}});
  Run(injector, site);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeNotTrimmed);
  EXPECT_EQ(injector.site(site).last_error, kTrimNotMarked);
  EXPECT_EQ(injector.site(site).shadows, 0u);
  EXPECT_EQ(ballast.Mappings(), before);
  EXPECT_FALSE(AnyDontFork());
  EXPECT_EQ(injector.plan().trim.marked, 0u);
  munmap(hole, 8 * kMb);
}

// As when it cannot be forked at all: the marks do not depend on what becomes of the copy.
TEST_F(TrimTest, AShadowThatDoesNotStartLeavesNoMark) {
  const Ballast ballast;
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  const std::vector<std::string> before = ballast.Mappings();
  Plan(injector, site, ballast, {{ballast.At(2), 20 * kMb}}).run_count = kMaxRuns + 1;
  Run(injector, site);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeSetupFailed);
  EXPECT_EQ(ballast.Mappings(), before);
  EXPECT_FALSE(AnyDontFork());
}

}  // namespace
}  // namespace perfd::agent
