#include "agent/experiment/loop_experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/experiment/fake_lab.h"

namespace perfd {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class LoopExperimentTest : public ::testing::Test {
 protected:
  LoopMeasurement Run(const FakeTruth& truth, std::vector<std::string> asked,
                      int64_t credit_ns = 1'000'000'000) {
    FakeLab lab(truth, &log_);
    LabLoop loop;
    for (const std::string& name : asked) loop.variants.push_back(*ParseVariantName(name));
    auto installed = lab.Install({loop});
    LoopSetup setup;
    setup.asked = asked;
    setup.repetitions = 9;
    setup.shadow_ns = 500'000'000;
    setup.ticks_per_ns = 2;
    LoopExperiment experiment(setup, (*installed)[0]);
    for (int i = 0; i < 200 && experiment.stage() != LoopExperiment::Stage::kDone; ++i) {
      experiment.Step(
          lab, {.credit_ns = credit_ns, .timeout_ns = 1000, .prediction = lab.PredictShadow()});
    }
    EXPECT_EQ(experiment.stage(), LoopExperiment::Stage::kDone);
    return experiment.Measurement(7);
  }

  static double Saturation(const LoopMeasurement& loop, const std::string& variant) {
    for (const VariantFigures& figures : loop.figures) {
      if (figures.variant == variant && figures.thread == kTeam) return figures.saturation.value;
    }
    return -1;
  }

  FakeLog log_;
};

TEST_F(LoopExperimentTest, FindsTheSaturationsOfTheTruth) {
  FakeTruth truth;
  truth.saturation = {{"LS", 0.95}, {"FP", 0.2}, {"DL1", 0.4}, {"S2L", 0.7}};
  const LoopMeasurement loop = Run(truth, {"LS", "FP", "DL1", "S2L"});
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_NEAR(Saturation(loop, "LS"), 0.95, 0.02);
  EXPECT_NEAR(Saturation(loop, "FP"), 0.2, 0.01);
  EXPECT_NEAR(Saturation(loop, "DL1"), 0.4, 0.01);
  EXPECT_NEAR(Saturation(loop, "S2L"), 0.7, 0.01);
  EXPECT_EQ(loop.revision, 7u);
  EXPECT_EQ(loop.team, 2);
  EXPECT_EQ(loop.protocol, "warm");
  EXPECT_NEAR(loop.fidelity.value, 1, 0.02);
  EXPECT_EQ(loop.trips.decile[5], 5000);
  EXPECT_THAT(loop.open, ElementsAre());
  EXPECT_EQ(loop.references.size(), size_t{2});
  EXPECT_EQ(log_.restored_runs, 0);
}

TEST_F(LoopExperimentTest, LoopsThatUpdateInPlaceAreRestoredBeforeEachRun) {
  FakeTruth truth;
  truth.in_place = true;
  Run(truth, {"LS", "FP"});
  EXPECT_GT(log_.restored_runs, 10);
}

TEST_F(LoopExperimentTest, ColdProtocolWhereLiveIsSlower) {
  FakeTruth truth;
  truth.live_factor = 1.5;
  truth.saturation = {{"LS", 0.9}};
  const LoopMeasurement loop = Run(truth, {"LS", "FP", "DL1"});
  EXPECT_EQ(loop.protocol, "cold");
  EXPECT_NEAR(loop.fidelity.value, 1, 0.02);
  EXPECT_NEAR(Saturation(loop, "LS"), 0.9, 0.02);
  EXPECT_GT(log_.cold_runs, 10);
}

TEST_F(LoopExperimentTest, RefusalsKeepTheirReasons) {
  FakeTruth truth;
  truth.refused = {"NO_DIV"};
  const LoopMeasurement loop = Run(truth, {"LS", "FP", "NO_DIV"});
  EXPECT_EQ(loop.state, MeasureState::kMeasured);
  EXPECT_THAT(loop.refusals, Contains(::testing::Field(&Refusal::variant, "NO_DIV")));
  EXPECT_THAT(loop.open, Not(Contains("NO_DIV")));
}

TEST_F(LoopExperimentTest, AVariantThatAlwaysFaultsDoesNotHoldUpTheRest) {
  FakeTruth truth;
  truth.faulting = "FP";
  const LoopMeasurement loop = Run(truth, {"LS", "FP", "DL1"});
  EXPECT_LE(Saturation(loop, "FP"), 0);  // no valid run
  EXPECT_NEAR(Saturation(loop, "LS"), 1, 0.02);
  EXPECT_LE(log_.shadows, 64 + 1);
}

TEST_F(LoopExperimentTest, AReferenceThatFaultsRefusesTheLoop) {
  FakeTruth truth;
  truth.faulting = "REF";
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.state, MeasureState::kRefused);
  EXPECT_THAT(loop.reason, HasSubstr("SIGSEGV"));
  EXPECT_EQ(log_.shadows, 1);
}

TEST_F(LoopExperimentTest, LoopsNobodyEntersAreSaidToBeSo) {
  FakeTruth truth;
  truth.team = 0;
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.state, MeasureState::kNeverEntered);
  EXPECT_EQ(log_.shadows, 0);
}

TEST_F(LoopExperimentTest, LoopsTooLongForAShadowAreRefusedWithTheBudgetTheyNeed) {
  FakeTruth truth;
  truth.ref_cycles = 4e8;  // 200 ms
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.state, MeasureState::kRefused);
  EXPECT_THAT(loop.reason, HasSubstr("budget.shadow of 857 ms"));
  EXPECT_EQ(log_.shadows, 0);
}

TEST_F(LoopExperimentTest, AnUnsafeRankIsNotTriedAgain) {
  FakeTruth truth;
  truth.shadow_status = absl::FailedPreconditionError("no memory headroom");
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.state, MeasureState::kRefused);
  EXPECT_EQ(loop.reason, "no memory headroom");
}

TEST_F(LoopExperimentTest, ATeamThatNeverMeetsLeavesTheLoopOpen) {
  FakeTruth truth;
  truth.shadow_status = absl::UnavailableError("the team did not meet");
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.state, MeasureState::kOpen);
  EXPECT_THAT(loop.open, ElementsAre("LS"));
  EXPECT_EQ(loop.cost.failed_arms, 4u);
}

TEST_F(LoopExperimentTest, LittleCreditBuysFewVariantsAtATimeButAllInTheEnd) {
  FakeTruth truth;
  truth.ref_cycles = 2e6;  // 1 ms
  const LoopMeasurement loop = Run(truth, {"LS", "FP", "DL1"}, 6'000'000);
  EXPECT_EQ(loop.state, MeasureState::kMeasured);
  EXPECT_THAT(loop.open, ElementsAre());
  EXPECT_LT(log_.pause_ns / log_.shadows, 9'000'000);
}

}  // namespace
}  // namespace perfd
