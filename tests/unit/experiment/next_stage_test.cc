#include "agent/experiment/plan/next_stage.h"

#include <gtest/gtest.h>

#include "tests/unit/core/analysis/some_figures.h"

namespace perfd::agent {
namespace {

const StagePlan kAll{
    .asked = {"LS", "FP", "DL1", "NO_DIV", "NO_SQRT", "NO_RED", "S2L", "NO_STORE", "CTRL"},
    .groups = 3};

TEST(NextStage, AsksForTheVerdictFirst) {
  EXPECT_EQ(Joined(NextStage(Loop({}), kAll)), "LS FP DL1");
  EXPECT_EQ(Joined(NextStage(Loop({Figures("LS", 0.9)}), kAll)), "FP DL1");
}

TEST(NextStage, FollowsTheVerdict) {
  const auto after = [](double ls, double fp) {
    return Joined(
        NextStage(Loop({Figures("LS", ls), Figures("FP", fp), Figures("DL1", 0.5)}), kAll));
  };
  EXPECT_EQ(after(0.98, 0.2), "S2L NO_STORE GROUP(0) GROUP(1) GROUP(2)");
  EXPECT_EQ(after(0.2, 0.98), "NO_DIV NO_SQRT NO_RED NO_DIV+NO_RED");
  EXPECT_EQ(after(0.6, 0.6),
            "NO_DIV NO_SQRT NO_RED S2L NO_STORE NO_DIV+NO_RED GROUP(0) GROUP(1) GROUP(2)");
}

TEST(NextStage, EndsWithTheRestAndSkipsTheRefused) {
  LoopMeasurement loop =
      Loop({Figures("LS", 0.2), Figures("FP", 0.98), Figures("DL1", 0.9), Figures("NO_DIV", 0.5),
            Figures("NO_RED", 1), Figures("NO_DIV+NO_RED", 0.5)});
  loop.refusals.push_back({"NO_SQRT", 0x10, "no square root in the loop", 1});
  EXPECT_EQ(Joined(NextStage(loop, kAll)), "S2L NO_STORE CTRL");
  loop.state = MeasureState::kRefused;
  EXPECT_EQ(Joined(NextStage(loop, kAll)), "");
}

TEST(NextStage, RepeatsWhatIsNotYetTightButNotWhatNeverCounts) {
  VariantFigures loose = Figures("LS", 0.9, 0.2);
  loose.valid_runs = 30;
  LoopMeasurement loop = Loop({loose, Figures("FP", 0.2), Figures("DL1", 0.9)});
  EXPECT_EQ(Joined(NextStage(loop, kAll)), "LS");
  loop.figures[0].valid_runs = 0;
  loop.figures[0].invalid_runs = 4;
  loop.refusals.push_back({"LS", 0, "the variant faulted in the shadow", 4});
  EXPECT_EQ(Joined(NextStage(loop, kAll)).find("LS"), std::string::npos);
}

TEST(NextStage, GivesUpAfterFourRunsOfWhichNoneCounts) {
  LoopMeasurement loop = Loop({Figures("LS", 0.9, 0.2), Figures("FP", 0.2), Figures("DL1", 0.9)});
  loop.refusals.push_back({"LS", 0, "the variant faulted in the shadow", 3});
  VariantFigures& ls = loop.figures[0];
  ls.valid_runs = 0;
  ls.invalid_runs = 3;
  EXPECT_EQ(Joined(NextStage(loop, kAll)), "LS");
  ls.invalid_runs = 4;
  EXPECT_NE(Joined(NextStage(loop, kAll)), "LS");
  ls.valid_runs = 1;
  EXPECT_EQ(Joined(NextStage(loop, kAll)), "LS");
}

TEST(NextStage, WhatAChangingMachineSpoilsIsTriedLonger) {
  LoopMeasurement loop = Loop({Figures("LS", 0.9, 0.2), Figures("FP", 0.2), Figures("DL1", 0.9)});
  VariantFigures& ls = loop.figures[0];
  ls.valid_runs = 0;
  const auto asked_after = [&](std::vector<Refusal> refusals) {
    ls.invalid_runs = 0;
    for (const Refusal& refusal : refusals) ls.invalid_runs += static_cast<uint32_t>(refusal.count);
    loop.refusals = std::move(refusals);
    return Joined(NextStage(loop, kAll)) == "LS";
  };
  const std::string fault = "the variant faulted in the shadow";
  const auto changed = [](uint64_t runs) {
    return Refusal{"LS", 0, "REF changed", runs, RefusalKind::kMachineChanged};
  };
  const auto late = [](uint64_t runs) {
    return Refusal{"LS", 0, "it ended before", runs, RefusalKind::kNotRun};
  };
  EXPECT_TRUE(asked_after({changed(36), {"LS", 0, fault, 3}}));
  EXPECT_FALSE(asked_after({changed(35), {"LS", 0, fault, 4}}));
  EXPECT_FALSE(asked_after({changed(40)}));
  EXPECT_TRUE(asked_after({late(100)})) << "nothing has been tried";
  EXPECT_FALSE(asked_after({late(100), {"LS", 0, fault, 4}}));
}

// Where a shadow has no room for all of them, the last ones are left out.
TEST(NextStage, BeginsWithWhatIsLeastTried) {
  VariantFigures ls = Figures("LS", 0.9, 0.2), fp = Figures("FP", 0.2, 0.2);
  ls.valid_runs = 5;
  fp.valid_runs = 2;
  EXPECT_EQ(Joined(NextStage(Loop({ls, fp}), kAll)), "DL1 FP LS");
  fp.invalid_runs = 4;
  EXPECT_EQ(Joined(NextStage(Loop({ls, fp}), kAll)), "DL1 LS FP") << "in vain, but tried";
  LoopMeasurement loop = Loop({ls, fp});
  loop.refusals = {{"FP", 0, "the shadow ended before this run", 4, RefusalKind::kNotRun}};
  EXPECT_EQ(Joined(NextStage(loop, kAll)), "DL1 FP LS");
}

TEST(InstanceStage, WantsMoreInstancesOfWhatTheVerdictNeeds) {
  StagePlan plan = kAll;
  LoopMeasurement loop = Loop({Figures("LS", 1), Void("FP"), Figures("DL1", 0.5),
                               Figures("NO_DIV", 1), Figures("CTRL", 0.2)});
  EXPECT_EQ(Joined(InstanceStage(loop, plan)), "") << "the trip count does not vary";
  plan.instances = 6;
  EXPECT_EQ(Joined(InstanceStage(loop, plan)), "LS DL1 CTRL") << "FP never counts";
  loop.figures[0].shadows = 6;
  EXPECT_EQ(Joined(InstanceStage(loop, plan)), "DL1 CTRL");
  plan.instances = 5;
  EXPECT_EQ(Joined(InstanceStage(loop, plan)), "");
}

TEST(NextStage, GroupsOnlyWhereThereAreSeveralAndNotTooMany) {
  const auto groups = [](int count) {
    StagePlan plan = kAll;
    plan.asked = {"LS", "FP", "DL1"};
    plan.groups = count;
    return NextStage(Loop({Figures("LS", 0.98), Figures("FP", 0.2), Figures("DL1", 0.5)}), plan)
        .size();
  };
  EXPECT_EQ(groups(1), 0u);
  EXPECT_EQ(groups(2), 2u);
  EXPECT_EQ(groups(kMostGroups + 5), static_cast<size_t>(kMostGroups));
}

}  // namespace
}  // namespace perfd::agent
