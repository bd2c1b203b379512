// Recovery mode of a loop's experiment: when it is chosen, what it costs, what comes of its runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/experiment/steps/loop_experiment.h"
#include "agent/shadow/recovery_plan.h"
#include "tests/unit/experiment/placement_injector.h"

namespace perfd::agent {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class LoopRecoveryTest : public ::testing::Test {
 protected:
  LoopRecoveryTest() {
    installed_ = PlacementInjector::Copies();
    setup_.asked = {"LS", "FP"};
    setup_.repetitions = 9;
    setup_.shadow_ns = 500'000'000;
    setup_.ticks_per_ns = 2;
    setup_.recovery = true;
  }

  LoopMeasurement Run(int64_t credit_ns = 1'000'000'000) {
    LoopExperiment experiment(setup_, installed_);
    for (int i = 0; i < 200 && experiment.stage() != Stage::kDone; ++i) {
      const ShadowPrediction prediction;
      least_ = std::max(least_, experiment.LeastCost(prediction));
      trims_ = trims_ || experiment.footprint().has_value();
      spent_.push_back(experiment.Step(
          injector_, {.credit_ns = credit_ns, .timeout_ns = 1000, .prediction = {}}));
    }
    EXPECT_EQ(experiment.stage(), Stage::kDone);
    return experiment.Measurement(1);
  }
  static double Saturation(const LoopMeasurement& loop, const std::string& variant) {
    for (const VariantFigures& figures : loop.figures) {
      if (figures.variant == variant && figures.thread == kTeam) return figures.saturation.value;
    }
    return -1;
  }

  PlacementInjector injector_;
  InstalledLoop installed_;
  LoopSetup setup_;
  int64_t least_ = 0;
  bool trims_ = false;  // at any step
  std::vector<StepCost> spent_;
};

TEST_F(LoopRecoveryTest, MeasuresShortLoopsInTheRank) {
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_NEAR(Saturation(loop, "LS"), 0.25, 0.02);
  EXPECT_NEAR(Saturation(loop, "FP"), 1, 0.02);
  EXPECT_NEAR(loop.fidelity.value, 1, 0.05) << "only the copy's time has the probe in it";
  EXPECT_EQ(loop.protocol, "recovery");
  EXPECT_EQ(loop.provenance, Provenance::kLive);
  EXPECT_EQ(loop.trips.decile[0], 100);
  EXPECT_EQ(loop.trips.decile[10], 200);
  EXPECT_EQ(injector_.shadows, 0);
  EXPECT_FALSE(trims_) << "nothing is forked";
  ASSERT_FALSE(injector_.edits.empty());
  // The loop alone, each variant between two runs of its base, a count.
  EXPECT_THAT(injector_.edits[0].round, ElementsAre(kNoCopy, 0, 3, 0, 4, 0, 1));
  EXPECT_THAT(loop.refusals, IsEmpty());
}

TEST_F(LoopRecoveryTest, WhatItAddsIsToldAndBudgeted) {
  const LoopMeasurement loop = Run();
  int64_t runs = 0, added = 0;
  for (const RecoveryRequest& request : injector_.edits) runs += request.runs;
  for (const StepCost& cost : spent_) {
    EXPECT_EQ(cost.pause_ns, 0) << "nothing stands still";
    added += cost.later_ns;
  }
  EXPECT_EQ(loop.cost.recoveries, static_cast<uint64_t>(runs));
  EXPECT_EQ(loop.cost.recovery_ns, runs * 1000);
  EXPECT_EQ(added, runs * 1000);
  EXPECT_EQ(loop.cost.shadows, 0u);
  EXPECT_GE(least_, 4 * 7 * 1000);
}

TEST_F(LoopRecoveryTest, NoMoreRunsThanTheCreditBuys) {
  constexpr int64_t kCredit = 300'000;
  Run(kCredit);
  EXPECT_EQ(injector_.edits.at(0).runs, 92) << "of 230 ns of an instance and 3 us besides";
  for (const RecoveryRequest& request : injector_.edits) {
    EXPECT_LE(request.most_added_ns, kCredit);
    EXPECT_LE(static_cast<uint32_t>(request.runs), kMostRecoveries);
  }
}

TEST_F(LoopRecoveryTest, ThreadsAreTimedEachForItself) {
  injector_.team = 2;
  const LoopMeasurement loop = Run();
  EXPECT_NEAR(Saturation(loop, "LS"), 0.25, 0.02);
  EXPECT_THAT(loop.figures, Contains(AllOf(Field(&VariantFigures::variant, "LS"),
                                           Field(&VariantFigures::thread, 1))));
}

TEST_F(LoopRecoveryTest, OnlyWhenTheRequestAsksForIt) {
  setup_.recovery = false;
  const LoopMeasurement loop = Run();
  EXPECT_THAT(injector_.edits, IsEmpty());
  EXPECT_GT(injector_.shadows, 0);
  EXPECT_NE(loop.protocol, "recovery");
  EXPECT_EQ(loop.provenance, Provenance::kShadow);
  ASSERT_EQ(loop.refusals.size(), 1u);
  EXPECT_EQ(loop.refusals[0].variant, "in a row") << "and nothing in place";
}

TEST_F(LoopRecoveryTest, WhatMayNotRunInPlaceGoesToShadowsAndSaysWhy) {
  installed_.in_situ = absl::FailedPreconditionError("0x10 `mov`: it stores");
  const LoopMeasurement loop = Run();
  EXPECT_THAT(injector_.edits, IsEmpty());
  EXPECT_GT(injector_.shadows, 0);
  EXPECT_THAT(loop.refusals, Contains(AllOf(Field(&Refusal::variant, "in place"),
                                            Field(&Refusal::reason, HasSubstr("it stores")))));
}

TEST_F(LoopRecoveryTest, LongInstancesGoToShadows) {
  injector_.live_ticks = 20'000;  // 10 us
  Run();
  EXPECT_EQ(injector_.shadows, 0);
  injector_.edits.clear();
  injector_.live_ticks = 20'002;
  const LoopMeasurement loop = Run();
  EXPECT_THAT(injector_.edits, IsEmpty());
  EXPECT_GT(injector_.shadows, 0);
  EXPECT_THAT(loop.refusals, Contains(Field(&Refusal::reason, HasSubstr("10 us"))));
}

TEST_F(LoopRecoveryTest, CopiesThatMayNotAreLeftOutByName) {
  installed_.in_situ_copies[4] = false;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  for (const RecoveryRequest& request : injector_.edits)
    EXPECT_THAT(request.round, Not(Contains(4)));
  EXPECT_NEAR(Saturation(loop, "LS"), 0.25, 0.02);
  EXPECT_THAT(loop.refusals, Contains(Field(&Refusal::variant, "FP")));
}

TEST_F(LoopRecoveryTest, ARefusalOfTheLabEndsIt) {
  injector_.status = absl::FailedPreconditionError("the rank has mapped a device");
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kRefused);
  EXPECT_THAT(loop.reason, HasSubstr("device"));
  EXPECT_EQ(injector_.edits.size(), 1u);
}

}  // namespace
}  // namespace perfd::agent
