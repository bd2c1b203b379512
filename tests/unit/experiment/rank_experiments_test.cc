#include "agent/experiment/rank_experiments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/clock.h"
#include "tests/unit/experiment/fake_injector.h"
#include "tests/unit/experiment/own_loop.h"

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Stage = Stage;

constexpr double kTicksPerNs = 2;

class RankExperimentsTest : public ::testing::Test {
 protected:
  RankExperimentsTest() {
    places_.rank = RankOf(getpid(), 3);
    places_.loops = {OwnPlace(0)};
    request_.plan.profile_id = "p1";
    request_.plan.variants = {"LS", "FP", "DL1"};
    request_.plan.repetitions = 9;
    request_.node = "n1";
  }

  void Install() {
    request_.ranks = {places_};
    for (const LoopSite& place : places_.loops) request_.plan.loops.push_back(place.target);
    experiments_ =
        std::make_unique<RankExperiments>(places_, std::make_unique<FakeInjector>(truth_, &log_));
    experiments_->Install(places_, request_, kTicksPerNs);
  }

  StepRoom StepOnce(size_t loop) {
    const StepRoom room = experiments_->Prepare(loop, kNsPerSecond);
    experiments_->Step(loop, room);
    experiments_->Settle(loop);
    return room;
  }

  LoopMeasurement Measured(size_t loop) const { return experiments_->Measurement(loop, 1, Now()); }
  static int64_t Now() { return SystemClock().MonotonicNs(); }

  RankLoops places_;
  ExperimentRequest request_;
  FakeTruth truth_;
  FakeLog log_;
  std::unique_ptr<RankExperiments> experiments_;
};

TEST_F(RankExperimentsTest, InstallsTheCodeThatRunsAtItsRunTimeAddress) {
  Install();
  ASSERT_EQ(log_.asked.size(), size_t{1});
  EXPECT_EQ(log_.asked[0].loop_id, "loop0");
  EXPECT_EQ(log_.asked[0].code.header, OwnAddress() + kOwnHeader);
  EXPECT_EQ(log_.asked[0].code.instructions.size(), size_t{4});
  ASSERT_EQ(log_.asked[0].variants.size(), size_t{3});
  EXPECT_EQ(log_.asked[0].variants[2].Text(), "DL1");
  EXPECT_EQ(experiments_->stage(0), Stage::kEntryCount);
}

TEST_F(RankExperimentsTest, RefusedLoopsKeepTheirReasonsAndTheOthersTheirPlaces) {
  LoopSite outer = OwnPlace(2);  // a loop that holds others is one like any other
  outer.function.loops[0].innermost = false;
  LoopSite irreducible = OwnPlace(3);
  irreducible.function.loops[0].irreducible = true;
  LoopSite unknown = OwnPlace(4);
  unknown.target.header += 1;
  places_.loops = {
      RefusedSite(0, "another build"), OwnPlace(1), outer, irreducible, unknown, OwnPlace(5)};
  Install();
  ASSERT_EQ(log_.asked.size(), size_t{3});
  EXPECT_EQ(log_.asked[1].loop_id, "loop2");
  EXPECT_EQ(log_.asked[2].loop_id, "loop5");
  ASSERT_EQ(experiments_->loops(), size_t{6});
  EXPECT_EQ(Measured(0).reason, "another build");
  EXPECT_EQ(Measured(0).state, MeasureState::kRefused);
  EXPECT_EQ(experiments_->stage(2), Stage::kEntryCount);
  EXPECT_THAT(Measured(3).reason, HasSubstr("irreducible"));
  EXPECT_THAT(Measured(4).reason, HasSubstr("not in function kernel"));
  EXPECT_EQ(experiments_->stage(1), Stage::kEntryCount);
  EXPECT_EQ(Measured(5).loop_id, "loop5");
  EXPECT_EQ(Measured(5).location_key, "key5");
  EXPECT_EQ(Measured(5).profile_id, "p1");
  EXPECT_EQ(Measured(5).node, "n1");
  EXPECT_EQ(Measured(5).rank, 3);
  // The third loop of the injector is the sixth of the order.
  experiments_->Close(5, "enough");
  experiments_->Settle(5);
  EXPECT_THAT(log_.patches, ElementsAre(Pair(2, false)));
}

// An outer loop stands in the way of the loops inside it. Where it turns out that it cannot be measured, they can.
TEST_F(RankExperimentsTest, ALoopThatIsRefusedMakesWayForThoseThatShareItsCode) {
  places_.loops = {OwnPlace(0), OwnPlace(1), OwnPlace(2)};
  truth_.shares_code = true;
  truth_.ref_cycles = 1e12;  // one instance is too long for a shadow
  Install();
  EXPECT_EQ(Measured(1).state, MeasureState::kRefused);
  EXPECT_THAT(Measured(1).reason, HasSubstr("shares code"));
  for (int i = 0; i < 4 && experiments_->stage(0) != Stage::kDone; ++i) StepOnce(0);
  ASSERT_EQ(Measured(0).state, MeasureState::kRefused);
  EXPECT_THAT(log_.released, ElementsAre(0));
  EXPECT_THAT(log_.added, ElementsAre("loop1", "loop2"));
  EXPECT_EQ(experiments_->stage(1), Stage::kEntryCount);
  EXPECT_EQ(Measured(1).loop_id, "loop1");
  EXPECT_THAT(Measured(2).reason, HasSubstr("shares code")) << "now with the second";
  // Numbers of the injector go on.
  StepOnce(1);
  EXPECT_THAT(log_.patches, testing::Contains(Pair(3, true)));
}

TEST_F(RankExperimentsTest, ALoopThatIsMeasuredKeepsItsCode) {
  places_.loops = {OwnPlace(0), OwnPlace(1)};
  truth_.shares_code = true;
  Install();
  for (int i = 0; i < 40 && experiments_->stage(0) != Stage::kDone; ++i) StepOnce(0);
  EXPECT_THAT(log_.released, IsEmpty());
  EXPECT_EQ(experiments_->stage(1), Stage::kDone);
}

TEST_F(RankExperimentsTest, AnotherProcessUnderThisPidIsNotTouched) {
  places_.rank.start_ticks += 1;
  Install();
  EXPECT_EQ(log_.installs, 0);
  EXPECT_EQ(Measured(0).state, MeasureState::kRefused);
  EXPECT_THAT(Measured(0).reason, HasSubstr("another one"));
  EXPECT_TRUE(experiments_->Restore().ok());
  EXPECT_EQ(log_.uninstalls, 0);
}

TEST_F(RankExperimentsTest, AnInstallThatCannotBeNowIsTriedAgain) {
  truth_.install_answers = {absl::UnavailableError("a thread is in the way")};
  Install();
  EXPECT_EQ(log_.installs, 2);
  EXPECT_EQ(experiments_->stage(0), Stage::kEntryCount);
}

TEST_F(RankExperimentsTest, AnInstallThatIsUnsafeIsNotTriedAgainButUndone) {
  truth_.install_answers = {absl::FailedPreconditionError("seccomp filter")};
  Install();
  EXPECT_EQ(log_.installs, 1);
  EXPECT_EQ(experiments_->stage(0), Stage::kDone);
  EXPECT_EQ(Measured(0).reason, "seccomp filter");
  EXPECT_TRUE(experiments_->Restore().ok());
  EXPECT_EQ(log_.uninstalls, 1);
}

TEST_F(RankExperimentsTest, ALoopThatTheLabRefusesIsNeverPatched) {
  truth_.install_status = absl::FailedPreconditionError("a branch targets the jump");
  Install();
  EXPECT_EQ(Measured(0).reason, "a branch targets the jump");
  experiments_->Settle(0);
  EXPECT_THAT(log_.patches, IsEmpty());
}

TEST_F(RankExperimentsTest, ALoopThatTheLabForgetsIsRefused) {
  places_.loops = {OwnPlace(0), OwnPlace(1)};
  truth_.loops_forgotten = 1;
  Install();
  EXPECT_EQ(experiments_->stage(0), Stage::kEntryCount);
  EXPECT_EQ(experiments_->stage(1), Stage::kDone);
  EXPECT_EQ(Measured(1).state, MeasureState::kRefused);
}

TEST_F(RankExperimentsTest, RarelyEnteredLoopsKeepTheirJumpUntilTheyAreDone) {
  Install();
  while (experiments_->stage(0) != Stage::kDone) StepOnce(0);
  EXPECT_EQ(Measured(0).state, MeasureState::kMeasured);
  EXPECT_THAT(log_.patches, ElementsAre(Pair(0, false)));  // once, at the end
}

// 3 ns per entry: 0.2 % of the time of two threads are 1.33 million entries per second.
TEST_F(RankExperimentsTest, OftenEnteredLoopsHaveTheirJumpOnlyWhileItIsNeeded) {
  truth_.entries_per_second = 1'333'334;
  Install();
  StepOnce(0);
  EXPECT_THAT(log_.jumps, IsEmpty());
  experiments_->Prepare(0, kNsPerSecond);
  EXPECT_THAT(log_.jumps, ElementsAre(0));
  experiments_->Settle(0);
  EXPECT_THAT(log_.patches, ElementsAre(Pair(0, false), Pair(0, true), Pair(0, false)));
  EXPECT_EQ(experiments_->steps(0), 2);
}

TEST_F(RankExperimentsTest, JustRareEnoughToKeepTheJump) {
  truth_.entries_per_second = 1'333'333;
  Install();
  StepOnce(0);
  EXPECT_THAT(log_.patches, IsEmpty());
}

TEST_F(RankExperimentsTest, AJumpThatCannotBeTakenOutIsTriedAgain) {
  truth_.entries_per_second = 1e9;
  truth_.patch_status = absl::UnavailableError("a thread is in the way");
  Install();
  StepOnce(0);
  StepOnce(0);
  EXPECT_EQ(std::count(log_.calls.begin(), log_.calls.end(), "patch"), 2);
}

TEST_F(RankExperimentsTest, WaitsForAHundredEntriesOfTheTeamWithinBounds) {
  const auto timeout = [&](double entries_per_second) {
    truth_.entries_per_second = entries_per_second;
    Install();
    StepOnce(0);
    return experiments_->Prepare(0, kNsPerSecond).timeout_ns;
  };
  EXPECT_EQ(timeout(100), 2 * kNsPerSecond);  // of two threads
  EXPECT_EQ(timeout(1e5), kNsPerSecond / 2);
  EXPECT_EQ(timeout(1), 10 * kNsPerSecond);
}

TEST_F(RankExperimentsTest, AStepHasItsCreditAndPrediction) {
  Install();
  const StepRoom room = StepOnce(0);
  EXPECT_EQ(room.credit_ns, kNsPerSecond);
  EXPECT_EQ(room.prediction.fork_ns, truth_.fork_ns);
}

TEST_F(RankExperimentsTest, IdleEntriesCostWhileTheJumpIsIn) {
  truth_.entries_per_second = 1000;
  Install();
  StepOnce(0);
  const auto cost = [&](int64_t later_ns) {
    return experiments_->Measurement(0, 1, Now() + later_ns).cost.pass_through_ns;
  };
  // 1000 entries of 3 ns per second, on two threads.
  const int64_t before = cost(0);
  EXPECT_NEAR(static_cast<double>(cost(1000 * kNsPerSecond) - before), 1.5e6, 1e3);
  EXPECT_TRUE(experiments_->Restore().ok());
  EXPECT_NEAR(static_cast<double>(cost(1000 * kNsPerSecond) - before), 0, 1e3);
}

TEST_F(RankExperimentsTest, StopsAreToldWithTheFirstLoopOnly) {
  places_.loops = {OwnPlace(0), OwnPlace(1)};
  Install();
  EXPECT_EQ(Measured(0).cost.stops, 2u);
  EXPECT_EQ(Measured(0).cost.longest_stop_ns, 300'000);
  EXPECT_EQ(Measured(0).cost.shadow_cpu_ns, 9'000'000);
  EXPECT_EQ(Measured(1).cost.stops, 0u);
  EXPECT_EQ(Measured(1).cost.shadow_cpu_ns, 0);
}

TEST_F(RankExperimentsTest, EachStopIsTakenOnce) {
  Install();
  const InjectionCost stops = experiments_->DrainStops();
  EXPECT_EQ(stops.stops, 2u);
  EXPECT_EQ(stops.stop_ns, 400'000);
  EXPECT_EQ(experiments_->DrainStops(), InjectionCost{});
}

TEST_F(RankExperimentsTest, RestoresUntilItSucceedsAndThenNoMore) {
  truth_.uninstall_answers.assign(4, absl::UnavailableError("a thread is in the way"));
  Install();
  EXPECT_TRUE(experiments_->Restore().ok());
  EXPECT_EQ(log_.uninstalls, 5);
  EXPECT_FALSE(log_.installed);
  EXPECT_TRUE(experiments_->Restore().ok());
  EXPECT_EQ(log_.uninstalls, 5);
}

TEST_F(RankExperimentsTest, SaysWhenSomethingIsLeft) {
  truth_.uninstall_answers.assign(5, absl::UnavailableError("a thread is in the way"));
  Install();
  EXPECT_EQ(experiments_->Restore().message(), "a thread is in the way");
  EXPECT_TRUE(log_.installed);
  EXPECT_TRUE(experiments_->Restore().ok());  // asked again it tries again
  EXPECT_FALSE(log_.installed);
}

TEST_F(RankExperimentsTest, ARankThatHasEndedIsRestored) {
  truth_.uninstall_answers = {absl::NotFoundError("gone")};
  Install();
  EXPECT_TRUE(experiments_->Restore().ok());
  EXPECT_EQ(log_.uninstalls, 1);
}

TEST_F(RankExperimentsTest, ShowsTheCodeWhenItIsAskedTo) {
  Install();
  EXPECT_FALSE(experiments_->experiment(0).HasFigures());
  while (experiments_->stage(0) != Stage::kDone) StepOnce(0);
  EXPECT_EQ(Measured(0).state, MeasureState::kMeasured);
  EXPECT_TRUE(experiments_->experiment(0).HasFigures());
  EXPECT_FALSE(experiments_->experiment(0).Lists());
  EXPECT_THAT(Measured(0).listings, IsEmpty());
  experiments_->ShowListings(0);
  EXPECT_TRUE(experiments_->experiment(0).Lists());
  EXPECT_FALSE(Measured(0).listings.empty());
}

TEST_F(RankExperimentsTest, NothingWaitsLongerThanTheProfileLasts) {
  truth_.entries_per_second = 1e-3;  // a hundred entries take longer than anybody waits
  Install();
  while (experiments_->stage(0) != Stage::kDone) {
    const StepRoom room = experiments_->Prepare(0, kNsPerSecond, 30 * kNsPerMs);
    EXPECT_EQ(room.timeout_ns, 30 * kNsPerMs);
    experiments_->Step(0, room);
  }
  ASSERT_FALSE(log_.waits_ns.empty());
  for (int64_t wait : log_.waits_ns) EXPECT_LE(wait, 30 * kNsPerMs);
  EXPECT_EQ(experiments_->Prepare(0, kNsPerSecond, -5).timeout_ns, 0);
}

TEST_F(RankExperimentsTest, LoopsThatComeLaterAreNumberedOnAndGetTheirJumpsWhenTheyArePrepared) {
  Install();
  StepOnce(0);
  experiments_->Add({RefusedSite(1, "not there"), OwnPlace(2)}, request_, kTicksPerNs);
  ASSERT_EQ(experiments_->loops(), size_t{3});
  EXPECT_EQ(log_.installs, 1);
  EXPECT_EQ(Measured(1).reason, "not there");
  EXPECT_THAT(log_.added, ElementsAre("loop2"));
  EXPECT_THAT(log_.jumps, ElementsAre(0));
  EXPECT_EQ(experiments_->stage(0), Stage::kLive);  // goes on where it was
  StepOnce(2);
  EXPECT_THAT(log_.jumps, ElementsAre(0, 1));  // the second loop that the injector has
  while (experiments_->stage(2) != Stage::kDone) StepOnce(2);
  EXPECT_EQ(Measured(2).state, MeasureState::kMeasured);
  EXPECT_EQ(Measured(2).loop_id, "loop2");
  EXPECT_TRUE(experiments_->Restore().ok());
  EXPECT_THAT(log_.jumps, IsEmpty());
}

TEST_F(RankExperimentsTest, AFailedAddRefusesOnlyTheNewLoops) {
  truth_.add_answers = {absl::FailedPreconditionError("no room within reach")};
  Install();
  experiments_->Add({OwnPlace(1)}, request_, kTicksPerNs);
  EXPECT_EQ(Measured(1).state, MeasureState::kRefused);
  EXPECT_EQ(Measured(1).reason, "no room within reach");
  experiments_->Add({OwnPlace(2)}, request_, kTicksPerNs);
  while (experiments_->stage(2) != Stage::kDone) StepOnce(2);
  EXPECT_EQ(Measured(2).state, MeasureState::kMeasured);
  while (experiments_->stage(0) != Stage::kDone) StepOnce(0);
  EXPECT_EQ(Measured(0).state, MeasureState::kMeasured);
}

TEST_F(RankExperimentsTest, WhereNothingCouldBeInstalledTheFirstLoopsThatCanAreInstalled) {
  places_.loops = {RefusedSite(0, "not there")};
  Install();
  EXPECT_EQ(log_.installs, 0);
  experiments_->Add({OwnPlace(1)}, request_, kTicksPerNs);
  EXPECT_EQ(log_.installs, 1);
  EXPECT_THAT(log_.jumps, ElementsAre(0));
  while (experiments_->stage(1) != Stage::kDone) StepOnce(1);
  EXPECT_EQ(Measured(1).state, MeasureState::kMeasured);
}

TEST_F(RankExperimentsTest, ALoopThatIsGivenUpLosesItsJumpAndKeepsWhatIsKnown) {
  places_.loops = {OwnPlace(0), OwnPlace(1)};
  Install();
  for (int i = 0; i < 4; ++i) StepOnce(0);
  ASSERT_TRUE(experiments_->experiment(0).HasFigures());
  const size_t figures = Measured(0).figures.size();
  experiments_->GiveUp(0);
  EXPECT_THAT(log_.jumps, ElementsAre(1));
  EXPECT_EQ(Measured(0).figures.size(), figures);
  EXPECT_EQ(Measured(0).state, MeasureState::kOpen);
  EXPECT_THAT(Measured(0).reason, HasSubstr("hot no more"));
  experiments_->TakeUp(0);
  EXPECT_EQ(Measured(0).reason, "");
  while (experiments_->stage(0) != Stage::kDone) StepOnce(0);
  EXPECT_EQ(Measured(0).state, MeasureState::kMeasured);
}

TEST_F(RankExperimentsTest, AGivenUpLoopIsClosedForThatReason) {
  Install();
  for (int i = 0; i < 3; ++i) StepOnce(0);
  experiments_->GiveUp(0);
  experiments_->Close(0, "the profile ended first");
  EXPECT_THAT(Measured(0).reason, HasSubstr("hot no more"));
}

TEST_F(RankExperimentsTest, AJumpThatDoesNotComeOutIsTriedAgainAFewTimes) {
  truth_.patch_status = absl::UnavailableError("a thread is in the way");
  Install();
  experiments_->GiveUp(0);
  for (int i = 0; i < 20; ++i) experiments_->RemoveGivenUp();
  EXPECT_EQ(std::count(log_.calls.begin(), log_.calls.end(), "patch"), 5);
  experiments_->TakeUp(0);
  experiments_->GiveUp(0);
  EXPECT_EQ(std::count(log_.calls.begin(), log_.calls.end(), "patch"), 6);
}

// Its phase ended while its team was waited for; it is another matter when the phase is back.
TEST_F(RankExperimentsTest, WhatFailedBecauseItsPhaseEndedIsBegunAgainWithThePhase) {
  truth_.shadow_status = absl::DeadlineExceededError("the loop was not entered in time");
  Install();
  while (experiments_->stage(0) != Stage::kDone) StepOnce(0);
  EXPECT_EQ(Measured(0).state, MeasureState::kOpen);
  experiments_->GiveUp(0);
  EXPECT_THAT(Measured(0).reason, HasSubstr("not entered in time"));
  experiments_->TakeUp(0);
  EXPECT_EQ(experiments_->stage(0), Stage::kProbe);
}

}  // namespace
}  // namespace perfd::agent
