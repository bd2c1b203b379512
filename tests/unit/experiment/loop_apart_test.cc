#include "agent/experiment/loop/apart.h"
#include "tests/unit/experiment/loop_fixture.h"

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LoopApartTest : public LoopTest {
 protected:
  LoopApartTest() {
    truth_.apart = true;
    truth_.saturation = {{"LS", 0.9}, {"FP", 0.2}};
  }

  int Runs(CopyForm form) const { return log_.forms[static_cast<size_t>(form)]; }

  FakeTruth truth_;
};

TEST_F(LoopApartTest, WhatATraceShowsToBeApartMayBeChanged) {
  const LoopMeasurement loop = Run(truth_, {"LS", "FP"});
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_GT(Team(loop, "LS").edits.pinned, 100) << "the figures are of the copies that ran";
  EXPECT_NEAR(Team(loop, "FP").saturation.value, 0.2, 0.01);
  EXPECT_GT(Runs(CopyForm::kApart), 10);
  EXPECT_EQ(Runs(CopyForm::kApartTraced), 2) << "each variant is held against the loop once";
}

TEST_F(LoopApartTest, WhereTheRangesMeetNothingIsTakenApart) {
  truth_.in_situ = true;  // the store goes where the load reads
  const LoopMeasurement loop = Run(truth_, {"LS", "FP"});
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_LT(Team(loop, "LS").edits.pinned, 100);
  EXPECT_EQ(Runs(CopyForm::kApart) + Runs(CopyForm::kApartTraced), 0);
}

TEST_F(LoopApartTest, OneVariantThatDiffersWithdrawsTheAssumptionForAll) {
  truth_.differing = "FP";
  const LoopMeasurement loop = Run(truth_, {"LS", "FP"});
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  for (const char* variant : {"LS", "FP"})
    EXPECT_LT(Team(loop, variant).edits.pinned, 100) << variant;
  const auto told = std::find_if(loop.refusals.begin(), loop.refusals.end(),
                                 [](const Refusal& refusal) { return refusal.variant == "apart"; });
  ASSERT_NE(told, loop.refusals.end());
  EXPECT_THAT(told->reason, HasSubstr("FP takes away"));
  EXPECT_GT(Runs(CopyForm::kUsual), 20);
}

TEST_F(LoopApartTest, AVariantThatFaultsWhereTheLoopDoesNotWithdrawsIt) {
  int traced = 0;
  truth_.on_shadow = [&](const ShadowRequest& request, ShadowAnswer& answer) {
    for (ShadowRun& run : answer.runs) {
      if (request.runs[static_cast<size_t>(run.run)].form != CopyForm::kApartTraced) continue;
      run.ok = false;
      run.failure = "SIGSEGV at 0x10";
      ++traced;
    }
    return absl::OkStatus();
  };
  const LoopMeasurement loop = Run(truth_, {"LS"});
  EXPECT_GT(traced, 0);
  EXPECT_LT(Team(loop, "LS").edits.pinned, 100);
}

TEST_F(LoopApartTest, WhatWasNotHeldAgainstTheLoopDoesNotCount) {
  int shadows = 0;
  truth_.on_shadow = [&](const ShadowRequest& request, ShadowAnswer& answer) {
    for (ShadowRun& run : answer.runs) {
      const RunSpec& spec = request.runs[static_cast<size_t>(run.run)];
      if (spec.form != CopyForm::kApartTraced || ++shadows > 4) continue;
      LeaveOut(run);
    }
    return absl::OkStatus();
  };
  const LoopMeasurement loop = Run(truth_, {"LS"});
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_GT(Team(loop, "LS").edits.pinned, 100);
  EXPECT_GT(Runs(CopyForm::kApartTraced), 2) << "it is tried again";
}

constexpr int kNever = 1 << 20;

// The path may be taken in other instances: each shadow looks again, at the instance that its runs repeat.
TEST_F(LoopApartTest, WhatWasNotExecutedIsApartAsLongAsItIsNot) {
  truth_.load_from = kNever;
  const LoopMeasurement loop = Run(truth_, {"LS", "FP"});
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_GT(Team(loop, "LS").edits.pinned, 100);
  EXPECT_NEAR(Team(loop, "FP").saturation.value, 0.2, 0.01);
}

TEST_F(LoopApartTest, AShadowThatTakesAnotherPathTellsNothing) {
  truth_.load_from = kNever;
  int shadows = 0, taken = 0;
  truth_.on_shadow = [&](const ShadowRequest& request, ShadowAnswer& answer) {
    const bool apart = std::any_of(request.runs.begin(), request.runs.end(),
                                   [](const auto& run) { return run.form == CopyForm::kApart; });
    if (!apart || ++shadows % 2 != 0) return absl::OkStatus();
    ++taken;
    for (std::vector<TraceRecord>& trace : answer.traces) trace.front().count = 1;
    for (ShadowRun& run : answer.runs) run.cycles *= 7;  // were they looked at, it would be seen
    return absl::OkStatus();
  };
  const LoopMeasurement loop = Run(truth_, {"FP"});
  EXPECT_GT(taken, 0);
  EXPECT_GT(Team(loop, "FP").edits.pinned, 100);
  EXPECT_LT(Team(loop, "REF").cycles, 2 * truth_.ref_cycles);
}

TEST_F(LoopApartTest, APathThatIsTakenAgainAndAgainWithdrawsIt) {
  truth_.load_from = 4;
  const LoopMeasurement loop = Run(truth_, {"LS", "FP"});
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_LT(Team(loop, "LS").edits.pinned, 100);
  const auto told = std::find_if(loop.refusals.begin(), loop.refusals.end(),
                                 [](const Refusal& refusal) { return refusal.variant == "apart"; });
  ASSERT_NE(told, loop.refusals.end());
  EXPECT_THAT(told->reason, HasSubstr("a path that is seldom taken"));
}

// More passes than a trace has: what the last of them do is not known.
TEST_F(LoopApartTest, ATraceThatIsCutShortShowsNoPath) {
  truth_.load_from = kNever;
  truth_.iterations = 30'000;
  const LoopMeasurement loop = Run(truth_, {"LS", "FP"});
  EXPECT_LT(Team(loop, "LS").edits.pinned, 100);
}

TEST(ShownApartTest, OnlyWhatWasSeenAndDoesNotMeetIsApart) {
  using enum Apartness;
  TraceSummary trace;
  trace.references = {
      {.instruction = 0x10, .reads = false, .writes = true, .lowest = 100, .highest = 200},
      {.instruction = 0x14, .reads = true, .writes = false, .lowest = 200, .highest = 300},
      {.instruction = 0x18, .reads = true, .writes = false, .lowest = 199, .highest = 207}};
  trace.not_executed = {0x20};
  const auto shown = [&](std::vector<AccessPair> pairs) { return ShownApart(trace, pairs, {}); };
  EXPECT_EQ(shown({}), kApart);
  EXPECT_EQ(shown({{0x10, 0x14}}), kApart) << "one past the last byte";
  EXPECT_EQ(shown({{0x10, 0x18}}), kMayMeet);
  EXPECT_EQ(shown({{0x10, 0x14}, {0x10, 0x18}}), kMayMeet) << "all of them";
  EXPECT_EQ(shown({{0x10, 0x1c}}), kMayMeet) << "no trace could tell it";
  EXPECT_EQ(shown({{0x10, 0x14}, {0x10, 0x20}}), kUnlessTaken);
  EXPECT_EQ(shown({{0x20, 0x18}}), kUnlessTaken);
  EXPECT_EQ(shown({{0x10, 0x20}, {0x10, 0x18}}), kMayMeet);
  const LoadBias bias(0x1010, 0x10);
  EXPECT_EQ(ShownApart(trace, std::vector<AccessPair>{{0x1010, 0x1014}}, bias), kApart);
  EXPECT_EQ(ShownApart(trace, std::vector<AccessPair>{{0x1010, 0x1020}}, bias), kUnlessTaken);
}

}  // namespace
}  // namespace perfd::agent
