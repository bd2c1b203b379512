// Forks that leave memory out, in the test's own process: what the copy lacks, what the rank keeps, and that no mark is ever left.
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "tests/integration/shadow/narrow_fixture.h"

namespace perfd {
namespace {

TEST_F(NarrowTest, TheShadowLacksItAndTheRankDoesNot) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  ShadowPlan& plan =
      Plan(lab, site, ballast, {{ballast.At(2), 20 * kMb}, {ballast.At(30), 34 * kMb}});
  const std::vector<std::string> before = ballast.Mappings();
  Run(lab, site);
  EXPECT_EQ(ballast.Mappings(), before) << "cut mappings have to grow together again";
  EXPECT_FALSE(AnyDontFork());
  ASSERT_EQ(lab.site(site).last_outcome, kOutcomeDone);
  EXPECT_EQ(plan.narrow.waiting, 1u);
  EXPECT_EQ(plan.narrow.marked, 0u);
  EXPECT_EQ(plan.narrow.stuck, 0u);
  EXPECT_EQ(lab.result(0, 0).status, uint32_t{kRunOk});
  EXPECT_EQ(lab.result(0, 0).iterations, 7u);
  EXPECT_EQ(lab.result(1, 0).status, uint32_t{kRunFaulted});
  EXPECT_EQ(lab.child().fault.address, ballast.At(20));
  EXPECT_TRUE(ballast.Intact());
  EXPECT_EQ(ChildSees(ballast), 3);
}

TEST_F(NarrowTest, AWholeForkHasItAll) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  Plan(lab, site, ballast, {{ballast.At(2), 20 * kMb}}).flags &= ~uint32_t{kPlanNarrow};
  Run(lab, site);
  EXPECT_EQ(lab.result(1, 0).iterations, 7u);
  EXPECT_EQ(lab.plan().narrow.waiting, 0u);
}

TEST_F(NarrowTest, ManyTimesAndTheMapIsTheSame) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  std::vector<NarrowRange> ranges;
  for (uint64_t i = 0; i < 16; ++i) ranges.push_back({ballast.At(2 + 4 * i % 62), 2 * kMb});
  const std::vector<std::string> before = ballast.Mappings();
  for (int i = 0; i < 20; ++i) {
    Plan(lab, site, ballast, ranges);
    lab.plan().run_count = 1;
    Run(lab, site);
    ASSERT_EQ(lab.site(site).last_outcome, kOutcomeDone);
  }
  EXPECT_EQ(ballast.Mappings(), before);
  EXPECT_EQ(ChildSees(ballast), 3);
}

TEST_F(NarrowTest, WithoutTheAgentNothingIsForked) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  const std::vector<std::string> before = ballast.Mappings();
  struct Case {
    uint32_t answer;
    int32_t step;
  };
  for (const Case& c : {Case{0, kNarrowNoAnswer}, Case{kNarrowNo, kNarrowRefused}}) {
    ShadowPlan& plan = Plan(lab, site, ballast, {{ballast.At(2), 20 * kMb}});
    plan.narrow.answer = c.answer == kNarrowNo ? NarrowAnswer(plan.generation, c.answer) : c.answer;
    Run(lab, site);
    EXPECT_EQ(lab.site(site).last_outcome, kOutcomeNotNarrowed);
    EXPECT_EQ(lab.site(site).last_error, c.step);
  }
  EXPECT_EQ(lab.site(site).shadows, 0u);
  EXPECT_EQ(ballast.Mappings(), before);
}

// To the plan before, that is: its ranges may be half written by now.
TEST_F(NarrowTest, AStaleAnswerIsNone) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  const std::vector<std::string> before = ballast.Mappings();
  ShadowPlan& plan = Plan(lab, site, ballast, {{ballast.At(2), 20 * kMb}});
  plan.narrow.answer = NarrowAnswer(plan.generation - 1, kNarrowGo);
  Run(lab, site);
  EXPECT_EQ(lab.site(site).last_outcome, kOutcomeNotNarrowed);
  EXPECT_EQ(lab.site(site).last_error, kNarrowNoAnswer);
  EXPECT_EQ(lab.site(site).shadows, 0u);
  EXPECT_EQ(ballast.Mappings(), before);
}

// The shadow's own buffers must not come to lie where the loop's arrays were.
TEST_F(NarrowTest, WhatIsLeftOutStaysEmpty) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  ShadowPlan& plan = Plan(lab, site, ballast, {{ballast.At(2), 20 * kMb}});
  plan.run_count = 0;
  for (uint64_t mb : {1, 3, 6, 9, 12, 15, 18, 21})
    plan.runs[plan.run_count++] = {Look(lab, ballast.At(mb)), 0,
                                   3 << kRunEvictShift | kRunRestore | kRunLearn, 0, 0};
  plan.evict_bytes[3] = 8 * kMb;
  plan.restores[plan.restore_count++] = {ballast.At(24), 8 * kMb, kSharedOut, 0};
  Run(lab, site);
  EXPECT_EQ(lab.result(0, 0).status, uint32_t{kRunOk});
  for (uint32_t run = 1; run < 8; ++run)
    EXPECT_EQ(lab.result(run, 0).status, uint32_t{kRunFaulted}) << run;
  EXPECT_EQ(lab.child().fault.address, ballast.At(3));
  EXPECT_TRUE(ballast.Intact());
}

// The team stands still from the question on, not from the fork.
TEST_F(NarrowTest, TheAnswerIsPartOfThePause) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  ShadowPlan& plan = Plan(lab, site, ballast, {{ballast.At(2), 20 * kMb}});
  plan.shadow_ns = 300'000'000;
  plan.agent_wait_ns = 2'000'000'000;
  plan.narrow.answer = 0;
  plan.runs[0].copy = lab.Raw({0xeb, 0xfe});  // for ever
  std::thread agent([&] {
    LeaderAsks(plan);
    usleep(200'000);
    Answer(plan, kNarrowGo);
  });
  const uint64_t begin = ReadTicks();
  usleep(10'000);
  const uint64_t per_10_ms = ReadTicks() - begin;
  Run(lab, site);
  agent.join();
  const uint32_t outcome = lab.site(site).last_outcome;
  EXPECT_TRUE(outcome == kOutcomeWatchdog || outcome == kOutcomeKilled) << outcome;
  EXPECT_LT(lab.site(site).pause_ticks, 40 * per_10_ms) << "200 + 7/8 of 300 ms if not";
}

TEST_F(NarrowTest, WhatTheKernelRefusesUndoesTheRest) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  // The last range goes on into a hole behind the memory.
  auto* hole = static_cast<char*>(
      mmap(nullptr, 8 * kMb, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(hole, MAP_FAILED);
  munmap(hole + 4 * kMb, 2 * kMb);
  const std::vector<std::string> before = ballast.Mappings();
  Plan(lab, site, ballast,
       {{ballast.At(2), 20 * kMb}, {reinterpret_cast<uint64_t>(hole), 8 * kMb}});
  Run(lab, site);
  EXPECT_EQ(lab.site(site).last_outcome, kOutcomeNotNarrowed);
  EXPECT_EQ(lab.site(site).last_error, kNarrowNotMarked);
  EXPECT_EQ(lab.site(site).shadows, 0u);
  EXPECT_EQ(ballast.Mappings(), before);
  EXPECT_FALSE(AnyDontFork());
  EXPECT_EQ(lab.plan().narrow.marked, 0u);
  munmap(hole, 8 * kMb);
}

// As when it cannot be forked at all: the marks do not depend on what becomes of the copy.
TEST_F(NarrowTest, AShadowThatDoesNotStartLeavesNoMark) {
  const Ballast ballast;
  SelfHosted lab;
  const uint32_t site = lab.Install(kSum);
  const std::vector<std::string> before = ballast.Mappings();
  Plan(lab, site, ballast, {{ballast.At(2), 20 * kMb}}).run_count = kMaxRuns + 1;
  Run(lab, site);
  EXPECT_EQ(lab.site(site).last_outcome, kOutcomeSetupFailed);
  EXPECT_EQ(ballast.Mappings(), before);
  EXPECT_FALSE(AnyDontFork());
}

}  // namespace
}  // namespace perfd
