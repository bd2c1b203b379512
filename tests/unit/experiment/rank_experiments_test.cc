#include "agent/experiment/rank_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/clock.h"
#include "tests/unit/experiment/fake_lab.h"
#include "tests/unit/experiment/own_loop.h"

namespace perfd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Stage = LoopExperiment::Stage;

constexpr double kTicksPerNs = 2;

class RankBenchTest : public ::testing::Test {
 protected:
  RankBenchTest() {
    places_.rank = RankOf(getpid(), 3);
    places_.loops = {OwnPlace(0)};
    request_.plan.profile_id = "p1";
    request_.plan.variants = {"LS", "FP", "DL1"};
    request_.plan.repetitions = 9;
    request_.node = "n1";
  }

  void Install() {
    request_.ranks = {places_};
    for (const LoopPlace& place : places_.loops) request_.plan.loops.push_back(place.target);
    bench_ = std::make_unique<RankBench>(places_.rank, std::make_unique<FakeLab>(truth_, &log_));
    bench_->Install(places_, request_, kTicksPerNs);
  }

  StepRoom StepOnce(size_t loop) {
    const StepRoom room = bench_->Prepare(loop, kNsPerSecond);
    bench_->Step(loop, room);
    bench_->Settle(loop);
    return room;
  }

  LoopMeasurement Measured(size_t loop) const { return bench_->Measurement(loop, 1, Now()); }
  static int64_t Now() { return SystemClock().MonotonicNs(); }

  RankPlaces places_;
  ExperimentRequest request_;
  FakeTruth truth_;
  FakeLog log_;
  std::unique_ptr<RankBench> bench_;
};

TEST_F(RankBenchTest, InstallsTheCodeThatRunsAtItsRunTimeAddress) {
  Install();
  ASSERT_EQ(log_.asked.size(), size_t{1});
  EXPECT_EQ(log_.asked[0].loop_id, "loop0");
  EXPECT_EQ(log_.asked[0].code.header, OwnAddress() + kOwnHeader);
  EXPECT_EQ(log_.asked[0].code.instructions.size(), size_t{4});
  ASSERT_EQ(log_.asked[0].variants.size(), size_t{3});
  EXPECT_EQ(log_.asked[0].variants[2].Text(), "DL1");
  EXPECT_EQ(bench_->stage(0), Stage::kCensus);
}

TEST_F(RankBenchTest, RefusedLoopsKeepTheirReasonsAndTheOthersTheirPlaces) {
  LoopPlace outer = OwnPlace(2);
  outer.function.loops[0].innermost = false;
  LoopPlace irreducible = OwnPlace(3);
  irreducible.function.loops[0].irreducible = true;
  LoopPlace unknown = OwnPlace(4);
  unknown.target.header += 1;
  places_.loops = {
      RefusedPlace(0, "another build"), OwnPlace(1), outer, irreducible, unknown, OwnPlace(5)};
  Install();
  ASSERT_EQ(log_.asked.size(), size_t{2});
  EXPECT_EQ(log_.asked[1].loop_id, "loop5");
  ASSERT_EQ(bench_->loops(), size_t{6});
  EXPECT_EQ(Measured(0).reason, "another build");
  EXPECT_EQ(Measured(0).state, MeasureState::kRefused);
  EXPECT_THAT(Measured(2).reason, HasSubstr("innermost"));
  EXPECT_THAT(Measured(3).reason, HasSubstr("irreducible"));
  EXPECT_THAT(Measured(4).reason, HasSubstr("not in function kernel"));
  EXPECT_EQ(bench_->stage(1), Stage::kCensus);
  EXPECT_EQ(Measured(5).loop_id, "loop5");
  EXPECT_EQ(Measured(5).location_key, "key5");
  EXPECT_EQ(Measured(5).profile_id, "p1");
  EXPECT_EQ(Measured(5).node, "n1");
  EXPECT_EQ(Measured(5).rank, 3);
  // The second loop of the lab is the sixth of the order.
  bench_->Close(5, "enough");
  bench_->Settle(5);
  EXPECT_THAT(log_.patches, ElementsAre(Pair(1, false)));
}

TEST_F(RankBenchTest, AnotherProcessUnderThisPidIsNotTouched) {
  places_.rank.start_ticks += 1;
  Install();
  EXPECT_EQ(log_.installs, 0);
  EXPECT_EQ(Measured(0).state, MeasureState::kRefused);
  EXPECT_THAT(Measured(0).reason, HasSubstr("another one"));
  EXPECT_TRUE(bench_->Restore().ok());
  EXPECT_EQ(log_.uninstalls, 0);
}

TEST_F(RankBenchTest, AnInstallThatCannotBeNowIsTriedAgain) {
  truth_.install_answers = {absl::UnavailableError("a thread is in the way")};
  Install();
  EXPECT_EQ(log_.installs, 2);
  EXPECT_EQ(bench_->stage(0), Stage::kCensus);
}

TEST_F(RankBenchTest, AnInstallThatIsUnsafeIsNotTriedAgainButUndone) {
  truth_.install_answers = {absl::FailedPreconditionError("seccomp filter")};
  Install();
  EXPECT_EQ(log_.installs, 1);
  EXPECT_EQ(bench_->stage(0), Stage::kDone);
  EXPECT_EQ(Measured(0).reason, "seccomp filter");
  EXPECT_TRUE(bench_->Restore().ok());
  EXPECT_EQ(log_.uninstalls, 1);
}

TEST_F(RankBenchTest, ALoopThatTheLabRefusesIsNeverPatched) {
  truth_.install_status = absl::FailedPreconditionError("a branch targets the jump");
  Install();
  EXPECT_EQ(Measured(0).reason, "a branch targets the jump");
  bench_->Settle(0);
  EXPECT_THAT(log_.patches, IsEmpty());
}

TEST_F(RankBenchTest, ALoopThatTheLabForgetsIsRefused) {
  places_.loops = {OwnPlace(0), OwnPlace(1)};
  truth_.loops_forgotten = 1;
  Install();
  EXPECT_EQ(bench_->stage(0), Stage::kCensus);
  EXPECT_EQ(bench_->stage(1), Stage::kDone);
  EXPECT_EQ(Measured(1).state, MeasureState::kRefused);
}

TEST_F(RankBenchTest, RarelyEnteredLoopsKeepTheirJumpUntilTheyAreDone) {
  Install();
  while (bench_->stage(0) != Stage::kDone) StepOnce(0);
  EXPECT_EQ(Measured(0).state, MeasureState::kMeasured);
  EXPECT_THAT(log_.patches, ElementsAre(Pair(0, false)));  // once, at the end
}

// 3 ns per entry: 0.2 % of the time of two threads are 1.33 million entries per second.
TEST_F(RankBenchTest, OftenEnteredLoopsHaveTheirJumpOnlyWhileItIsNeeded) {
  truth_.entries_per_second = 1'333'334;
  Install();
  StepOnce(0);
  EXPECT_THAT(log_.jumps, IsEmpty());
  bench_->Prepare(0, kNsPerSecond);
  EXPECT_THAT(log_.jumps, ElementsAre(0));
  bench_->Settle(0);
  EXPECT_THAT(log_.patches, ElementsAre(Pair(0, false), Pair(0, true), Pair(0, false)));
  EXPECT_EQ(bench_->steps(0), 2);
}

TEST_F(RankBenchTest, JustRareEnoughToKeepTheJump) {
  truth_.entries_per_second = 1'333'333;
  Install();
  StepOnce(0);
  EXPECT_THAT(log_.patches, IsEmpty());
}

TEST_F(RankBenchTest, AJumpThatCannotBeTakenOutIsTriedAgain) {
  truth_.entries_per_second = 1e9;
  truth_.patch_status = absl::UnavailableError("a thread is in the way");
  Install();
  StepOnce(0);
  StepOnce(0);
  EXPECT_EQ(std::count(log_.calls.begin(), log_.calls.end(), "patch"), 2);
}

TEST_F(RankBenchTest, WaitsForAHundredEntriesOfTheTeamWithinBounds) {
  const auto timeout = [&](double entries_per_second) {
    truth_.entries_per_second = entries_per_second;
    Install();
    StepOnce(0);
    return bench_->Prepare(0, kNsPerSecond).timeout_ns;
  };
  EXPECT_EQ(timeout(100), 2 * kNsPerSecond);  // of two threads
  EXPECT_EQ(timeout(1e5), kNsPerSecond / 2);
  EXPECT_EQ(timeout(1), 10 * kNsPerSecond);
}

TEST_F(RankBenchTest, AStepHasItsCreditAndPrediction) {
  Install();
  const StepRoom room = StepOnce(0);
  EXPECT_EQ(room.credit_ns, kNsPerSecond);
  EXPECT_EQ(room.prediction.fork_ns, truth_.fork_ns);
}

TEST_F(RankBenchTest, IdleEntriesCostWhileTheJumpIsIn) {
  truth_.entries_per_second = 1000;
  Install();
  StepOnce(0);
  const auto cost = [&](int64_t later_ns) {
    return bench_->Measurement(0, 1, Now() + later_ns).cost.pass_through_ns;
  };
  // 1000 entries of 3 ns per second, on two threads.
  const int64_t before = cost(0);
  EXPECT_NEAR(static_cast<double>(cost(1000 * kNsPerSecond) - before), 1.5e6, 1e3);
  EXPECT_TRUE(bench_->Restore().ok());
  EXPECT_NEAR(static_cast<double>(cost(1000 * kNsPerSecond) - before), 0, 1e3);
}

TEST_F(RankBenchTest, StopsAreToldWithTheFirstLoopOnly) {
  places_.loops = {OwnPlace(0), OwnPlace(1)};
  Install();
  EXPECT_EQ(Measured(0).cost.stops, 2u);
  EXPECT_EQ(Measured(0).cost.longest_stop_ns, 300'000);
  EXPECT_EQ(Measured(1).cost.stops, 0u);
}

TEST_F(RankBenchTest, EachStopIsTakenOnce) {
  Install();
  const InjectionCost stops = bench_->TakeStops();
  EXPECT_EQ(stops.stops, 2u);
  EXPECT_EQ(stops.stop_ns, 400'000);
  EXPECT_EQ(bench_->TakeStops(), InjectionCost{});
}

TEST_F(RankBenchTest, RestoresUntilItSucceedsAndThenNoMore) {
  truth_.uninstall_answers.assign(4, absl::UnavailableError("a thread is in the way"));
  Install();
  EXPECT_TRUE(bench_->Restore().ok());
  EXPECT_EQ(log_.uninstalls, 5);
  EXPECT_FALSE(log_.installed);
  EXPECT_TRUE(bench_->Restore().ok());
  EXPECT_EQ(log_.uninstalls, 5);
}

TEST_F(RankBenchTest, SaysWhenSomethingIsLeft) {
  truth_.uninstall_answers.assign(5, absl::UnavailableError("a thread is in the way"));
  Install();
  EXPECT_EQ(bench_->Restore().message(), "a thread is in the way");
  EXPECT_TRUE(log_.installed);
  EXPECT_TRUE(bench_->Restore().ok());  // asked again it tries again
  EXPECT_FALSE(log_.installed);
}

TEST_F(RankBenchTest, ARankThatHasEndedIsRestored) {
  truth_.uninstall_answers = {absl::NotFoundError("gone")};
  Install();
  EXPECT_TRUE(bench_->Restore().ok());
  EXPECT_EQ(log_.uninstalls, 1);
}

TEST_F(RankBenchTest, ShowsTheCodeWhenItIsAskedTo) {
  Install();
  EXPECT_FALSE(bench_->HasFigures(0));
  while (bench_->stage(0) != Stage::kDone) StepOnce(0);
  EXPECT_EQ(Measured(0).state, MeasureState::kMeasured);
  EXPECT_TRUE(bench_->HasFigures(0));
  EXPECT_FALSE(bench_->Lists(0));
  EXPECT_THAT(Measured(0).listings, IsEmpty());
  bench_->ShowListings(0);
  EXPECT_TRUE(bench_->Lists(0));
  EXPECT_FALSE(Measured(0).listings.empty());
}

TEST_F(RankBenchTest, NothingWaitsLongerThanTheProfileLasts) {
  truth_.entries_per_second = 1e-3;  // a hundred entries take longer than anybody waits
  Install();
  while (bench_->stage(0) != Stage::kDone) {
    const StepRoom room = bench_->Prepare(0, kNsPerSecond, 30 * kNsPerMs);
    EXPECT_EQ(room.timeout_ns, 30 * kNsPerMs);
    bench_->Step(0, room);
  }
  ASSERT_FALSE(log_.waits_ns.empty());
  for (int64_t wait : log_.waits_ns) EXPECT_LE(wait, 30 * kNsPerMs);
  EXPECT_EQ(bench_->Prepare(0, kNsPerSecond, -5).timeout_ns, 0);
}

TEST_F(RankBenchTest, LoopsThatComeLaterAreNumberedOnAndGetTheirJumpsWhenTheyArePrepared) {
  Install();
  StepOnce(0);
  bench_->Add({RefusedPlace(1, "not there"), OwnPlace(2)}, request_, kTicksPerNs);
  ASSERT_EQ(bench_->loops(), size_t{3});
  EXPECT_EQ(log_.installs, 1);
  EXPECT_EQ(Measured(1).reason, "not there");
  EXPECT_THAT(log_.added, ElementsAre("loop2"));
  EXPECT_THAT(log_.jumps, ElementsAre(0));
  EXPECT_EQ(bench_->stage(0), Stage::kLive);  // goes on where it was
  StepOnce(2);
  EXPECT_THAT(log_.jumps, ElementsAre(0, 1));  // the second loop that the lab has
  while (bench_->stage(2) != Stage::kDone) StepOnce(2);
  EXPECT_EQ(Measured(2).state, MeasureState::kMeasured);
  EXPECT_EQ(Measured(2).loop_id, "loop2");
  EXPECT_TRUE(bench_->Restore().ok());
  EXPECT_THAT(log_.jumps, IsEmpty());
}

TEST_F(RankBenchTest, AFailedAddRefusesOnlyTheNewLoops) {
  truth_.add_answers = {absl::FailedPreconditionError("no room within reach")};
  Install();
  bench_->Add({OwnPlace(1)}, request_, kTicksPerNs);
  EXPECT_EQ(Measured(1).state, MeasureState::kRefused);
  EXPECT_EQ(Measured(1).reason, "no room within reach");
  bench_->Add({OwnPlace(2)}, request_, kTicksPerNs);
  while (bench_->stage(2) != Stage::kDone) StepOnce(2);
  EXPECT_EQ(Measured(2).state, MeasureState::kMeasured);
  while (bench_->stage(0) != Stage::kDone) StepOnce(0);
  EXPECT_EQ(Measured(0).state, MeasureState::kMeasured);
}

TEST_F(RankBenchTest, WhereNothingCouldBeInstalledTheFirstLoopsThatCanAreInstalled) {
  places_.loops = {RefusedPlace(0, "not there")};
  Install();
  EXPECT_EQ(log_.installs, 0);
  bench_->Add({OwnPlace(1)}, request_, kTicksPerNs);
  EXPECT_EQ(log_.installs, 1);
  EXPECT_THAT(log_.jumps, ElementsAre(0));
  while (bench_->stage(1) != Stage::kDone) StepOnce(1);
  EXPECT_EQ(Measured(1).state, MeasureState::kMeasured);
}

TEST_F(RankBenchTest, ALoopThatIsGivenUpLosesItsJumpAndKeepsWhatIsKnown) {
  places_.loops = {OwnPlace(0), OwnPlace(1)};
  Install();
  for (int i = 0; i < 4; ++i) StepOnce(0);
  ASSERT_TRUE(bench_->HasFigures(0));
  const size_t figures = Measured(0).figures.size();
  bench_->GiveUp(0);
  EXPECT_THAT(log_.jumps, ElementsAre(1));
  EXPECT_EQ(Measured(0).figures.size(), figures);
  EXPECT_EQ(Measured(0).state, MeasureState::kOpen);
  EXPECT_THAT(Measured(0).reason, HasSubstr("hot no more"));
  bench_->TakeUp(0);
  EXPECT_EQ(Measured(0).reason, "");
  while (bench_->stage(0) != Stage::kDone) StepOnce(0);
  EXPECT_EQ(Measured(0).state, MeasureState::kMeasured);
}

TEST_F(RankBenchTest, AGivenUpLoopIsClosedForThatReason) {
  Install();
  for (int i = 0; i < 3; ++i) StepOnce(0);
  bench_->GiveUp(0);
  bench_->Close(0, "the profile ended first");
  EXPECT_THAT(Measured(0).reason, HasSubstr("hot no more"));
}

TEST_F(RankBenchTest, AJumpThatDoesNotComeOutIsTriedAgainAFewTimes) {
  truth_.patch_status = absl::UnavailableError("a thread is in the way");
  Install();
  bench_->GiveUp(0);
  for (int i = 0; i < 20; ++i) bench_->TakeOutGivenUp();
  EXPECT_EQ(std::count(log_.calls.begin(), log_.calls.end(), "patch"), 5);
  bench_->TakeUp(0);
  bench_->GiveUp(0);
  EXPECT_EQ(std::count(log_.calls.begin(), log_.calls.end(), "patch"), 6);
}

// Its phase ended while its team was waited for; it is another matter when the phase is back.
TEST_F(RankBenchTest, WhatFailedBecauseItsPhaseEndedIsBegunAgainWithThePhase) {
  truth_.shadow_status = absl::DeadlineExceededError("the loop was not entered in time");
  Install();
  while (bench_->stage(0) != Stage::kDone) StepOnce(0);
  EXPECT_EQ(Measured(0).state, MeasureState::kOpen);
  bench_->GiveUp(0);
  EXPECT_THAT(Measured(0).reason, HasSubstr("not entered in time"));
  bench_->TakeUp(0);
  EXPECT_EQ(bench_->stage(0), Stage::kLook);
}

}  // namespace
}  // namespace perfd
