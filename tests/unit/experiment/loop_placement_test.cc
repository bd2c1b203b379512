// Branches that a shadow must not learn by heart.
#include "tests/unit/experiment/loop_fixture.h"

namespace perfd::agent {
namespace {

class LoopPlacesTest : public LoopTest {
 protected:
  LoopPlacesTest() {
    truth_.saturation = {{"LS", 0.9}, {"FP", 0.3}, {"DL1", 0.5}};
    truth_.places = true;
    truth_.learnt_factor = 0.2;
  }

  LoopMeasurement Run() { return LoopTest::Run(truth_, {"LS", "FP", "DL1"}); }

  FakeTruth truth_;
};

TEST_F(LoopPlacesTest, EachRunFindsItsBranchesAsTheRankDoes) {
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_EQ(loop.protocol, "warm, branches as new");
  EXPECT_NEAR(loop.fidelity.value, 1, 0.05);
  EXPECT_NEAR(Team(loop, "FP").saturation.value, 0.3, 0.03);
  EXPECT_NEAR(Team(loop, "LS").saturation.value, 0.9, 0.05);
}

TEST_F(LoopPlacesTest, WithOnePlaceOnlyTheyAreLearnt) {
  truth_.places = false;
  EXPECT_NEAR(Run().fidelity.value, 0.2, 0.03);
}

TEST_F(LoopPlacesTest, WhatTheRankHasLearntIsLearntInShadows) {
  truth_.live_factor = 0.2;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_EQ(loop.protocol, "warm");
  EXPECT_NEAR(loop.fidelity.value, 1, 0.05);
  EXPECT_NEAR(Team(loop, "FP").saturation.value, 0.3, 0.03);
}

TEST_F(LoopPlacesTest, WhatIsSlowerThanLiveForOtherReasonsKeepsItsPlaces) {
  truth_.live_factor = 0.8;  // 1.25 in a shadow; learnt 0.25
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_EQ(loop.protocol, "warm, branches as new");
  EXPECT_NEAR(loop.fidelity.value, 1.25, 0.05);
}

// Three quarters of all instances are as live ones, others twice as long: the first shadow may have met one of those.
TEST_F(LoopPlacesTest, ALongInstanceIsNotTakenForLearntBranches) {
  truth_.trips = {1000, 2000, 1000, 1000};
  truth_.iterations = 1000;
  truth_.learnt_factor = 0.7;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_EQ(loop.protocol, "warm, branches as new");
}

// Chains are taken apart where they take far longer than live; what the rank has learnt is not a reason.
TEST_F(LoopPlacesTest, ChainsOfWhatTheRankHasLearntAreRunAtOnePlace) {
  truth_.ref_cycles = 1000;
  truth_.iterations = 40;
  truth_.batches = absl::OkStatus();
  truth_.live_factor = 0.2;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_GT(loop.instances, 100u);
  EXPECT_EQ(loop.protocol, "warm");
  EXPECT_NEAR(loop.fidelity.value, 1, 0.05);
}

TEST_F(LoopPlacesTest, ChainsOfWhatTheRankDecidesAnewAreNot) {
  truth_.ref_cycles = 1000;
  truth_.iterations = 40;
  truth_.batches = absl::OkStatus();
  const LoopMeasurement loop = Run();
  EXPECT_GT(loop.instances, 100u);
  EXPECT_EQ(loop.protocol, "warm, branches as new");
  EXPECT_NEAR(loop.fidelity.value, 1, 0.05);
}

TEST_F(LoopPlacesTest, AnInstanceThatIsOverBeforeItsCodeIsFetchedStaysWhereItIs) {
  truth_.ref_cycles = 10'000;  // 5 us
  EXPECT_EQ(Run().protocol, "warm");
}

}  // namespace
}  // namespace perfd::agent
