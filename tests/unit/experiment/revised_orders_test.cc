// A NodeExperimenter whose order is replaced while it measures.
#include "tests/unit/experiment/node_fixture.h"

namespace perfd::agent {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

class RevisedOrdersTest : public NodeExperimenterTest {
 protected:
  RevisedOrdersTest() {
    request_.plan.revision = 1;
    duration_ns_ = 100 * kNsPerSecond;
    sleep_ = [this](int64_t ns) { clock_.now_ns += ns; };
  }

  // An order of these loops, with their places in every rank.
  ExperimentRequest Order(uint64_t revision, const std::vector<int>& loops) {
    ExperimentRequest order;
    order.plan = request_.plan;
    order.plan.revision = revision;
    order.plan.loops.clear();
    for (const FakeRank& rank : ranks_) order.ranks.push_back({rank.places.rank, {}});
    for (int loop : loops) {
      order.plan.loops.push_back(OwnTarget(loop));
      for (RankLoops& rank : order.ranks) rank.loops.push_back(OwnPlace(loop));
    }
    return order;
  }

  // When an injector is asked for that for the nth time.
  void At(FakeRank& rank, const std::string& call, int nth, std::function<void()> then) {
    rank.truth.on_call = [call, nth, then, seen = 0](const std::string& name) mutable {
      if (name == call && ++seen == nth) then();
    };
  }

  static LoopMeasurement Loop(const ExperimentUpdate& update, const FakeRank& rank, int loop) {
    for (const LoopMeasurement& measurement : Of(update, rank)) {
      if (measurement.loop_id == OwnTarget(loop).loop_id) return measurement;
    }
    ADD_FAILURE() << "nothing is said of loop " << loop;
    return {};
  }
};

TEST_F(RevisedOrdersTest, NewLoopsAreMeasuredAndTheOthersGoOn) {
  FakeRank& first = AddRank();
  FakeRank& second = AddRank();
  At(first, "shadow", 3, [&] { experimenter_->Revise(Order(2, {1, 0, 2})); });
  const ExperimentUpdate update = Run();
  for (const FakeRank* rank : {&first, &second}) {
    ASSERT_THAT(Of(update, *rank), SizeIs(3));
    EXPECT_THAT(Of(update, *rank), Each(Field(&LoopMeasurement::state, MeasureState::kMeasured)));
    EXPECT_EQ(rank->log.installs, 1);
    EXPECT_THAT(rank->log.added, ElementsAre("loop2"));
    EXPECT_EQ(Calls(*rank, "entry_count"), 3);  // nobody was begun anew
    ExpectNothingLeft(*rank);
  }
  EXPECT_THAT(update.notices, IsEmpty());
}

TEST_F(RevisedOrdersTest, ALoopThatIsNoLongerNamedIsTakenOutAndKept) {
  FakeRank& rank = AddRank();
  request_.plan.variants = {"LS", "FP", "DL1", "NO_DIV", "NO_RED", "S2L", "NO_STORE"};
  At(rank, "shadow", 5, [&] { experimenter_->Revise(Order(2, {1})); });
  const ExperimentUpdate update = Run();
  const LoopMeasurement given_up = Loop(update, rank, 0);
  EXPECT_EQ(given_up.state, MeasureState::kOpen);
  EXPECT_THAT(given_up.reason, HasSubstr("hot no more"));
  EXPECT_THAT(given_up.figures, Not(IsEmpty()));
  EXPECT_EQ(Loop(update, rank, 1).state, MeasureState::kMeasured);
  EXPECT_THAT(rank.log.patches, Contains(Pair(0, false)));
  ExpectNothingLeft(rank);
}

TEST_F(RevisedOrdersTest, ALoopThatIsNamedAgainGoesOnWhereItWas) {
  FakeRank& rank = AddRank();
  At(rank, "shadow", 3, [&] { experimenter_->Revise(Order(2, {1})); });
  bool back = false;
  sleep_ = [&](int64_t ns) {
    clock_.now_ns += ns;
    if (std::exchange(back, true)) return;
    experimenter_->Revise(Order(3, {0, 1}));
  };
  const ExperimentUpdate update = Run();
  ASSERT_TRUE(back);
  EXPECT_THAT(Of(update, rank), Each(Field(&LoopMeasurement::state, MeasureState::kMeasured)));
  EXPECT_EQ(rank.log.installs, 1);
  EXPECT_THAT(rank.log.added, IsEmpty());
  EXPECT_EQ(Calls(rank, "entry_count"), 2);
}

TEST_F(RevisedOrdersTest, OrdersThatComeTwiceOrLateChangeNothing) {
  FakeRank& rank = AddRank();
  At(rank, "shadow", 3, [&] {
    experimenter_->Revise(Order(5, {0, 1, 2}));
    experimenter_->Revise(Order(4, {3}));
  });
  int naps = 0;
  sleep_ = [&](int64_t ns) {
    clock_.now_ns += ns;
    if (++naps == 1) experimenter_->Revise(Order(5, {0, 1, 2}));
    if (naps == 2) experimenter_->Revise(Order(4, {}));
    if (naps == 3) experimenter_->Revise(Order(0, {3}));
  };
  const ExperimentUpdate update = Run();
  ASSERT_GT(naps, 3);
  ASSERT_THAT(Of(update, rank), SizeIs(3));
  EXPECT_THAT(Of(update, rank), Each(Field(&LoopMeasurement::state, MeasureState::kMeasured)));
  EXPECT_THAT(rank.log.added, ElementsAre("loop2"));
}

TEST_F(RevisedOrdersTest, WithoutRevisionsItEndsWhenAllIsKnown) {
  FakeRank& rank = AddRank();
  request_.plan.revision = 0;
  sleep_ = [](int64_t) { FAIL() << "waits for an order that never comes"; };
  const ExperimentUpdate update = Run();
  EXPECT_THAT(Of(update, rank), Each(Field(&LoopMeasurement::state, MeasureState::kMeasured)));
  EXPECT_LT(clock_.now_ns, request_.end_ns - 50 * kNsPerSecond);
}

TEST_F(RevisedOrdersTest, WithRevisionsItWaitsForTheNextPhaseWithoutAJump) {
  FakeRank& rank = AddRank();
  std::set<int32_t> while_waiting = {-1};
  sleep_ = [&](int64_t ns) {
    clock_.now_ns += ns;
    while_waiting = rank.log.jumps;
  };
  Run();
  EXPECT_THAT(while_waiting, IsEmpty());
  EXPECT_GE(clock_.now_ns, request_.end_ns - 2 * kNsPerSecond);
  ExpectNothingLeft(rank);
}

TEST_F(RevisedOrdersTest, AnOrderOfNothingGivesEverythingUp) {
  FakeRank& rank = AddRank();
  At(rank, "live", 1, [&] { experimenter_->Revise(Order(2, {})); });
  const ExperimentUpdate update = Run();
  EXPECT_EQ(Calls(rank, "shadow"), 0);
  EXPECT_THAT(Of(update, rank), SizeIs(2));
  EXPECT_THAT(Of(update, rank), Each(Field(&LoopMeasurement::reason, HasSubstr("hot no more"))));
  ExpectNothingLeft(rank);
}

TEST_F(RevisedOrdersTest, RanksWithoutALabSayTheSameOfLaterLoops) {
  FakeRank& bad = AddRank();
  FakeRank& good = AddRank();
  bad.open_status = absl::FailedPreconditionError("it has a seccomp filter");
  At(good, "shadow", 1, [&] { experimenter_->Revise(Order(2, {0, 1, 2})); });
  const ExperimentUpdate update = Run();
  EXPECT_EQ(Loop(update, bad, 2).state, MeasureState::kRefused);
  EXPECT_EQ(Loop(update, bad, 2).reason, "it has a seccomp filter");
  EXPECT_EQ(Loop(update, good, 2).state, MeasureState::kMeasured);
}

TEST_F(RevisedOrdersTest, ARankThatIsNotFoundAnyMoreKeepsTheNumbersOfTheOthers) {
  FakeRank& gone = AddRank();
  FakeRank& here = AddRank();
  At(here, "shadow", 1, [&] {
    ExperimentRequest order = Order(2, {0, 1, 2});
    order.ranks.erase(order.ranks.begin());
    experimenter_->Revise(order);
    order = Order(3, {0, 1, 2, 3});
    experimenter_->Revise(order);
  });
  const ExperimentUpdate update = Run();
  EXPECT_EQ(Loop(update, here, 3).state, MeasureState::kMeasured);
  EXPECT_EQ(Loop(update, gone, 3).state, MeasureState::kMeasured);
  EXPECT_EQ(Of(update, gone).size(), Of(update, here).size());
}

TEST_F(RevisedOrdersTest, ALoopThatHasNoPlaceInARankIsRefusedThere) {
  FakeRank& gone = AddRank();
  FakeRank& here = AddRank();
  At(here, "shadow", 1, [&] {
    ExperimentRequest order = Order(2, {0, 1, 2});
    order.ranks.erase(order.ranks.begin());
    experimenter_->Revise(order);
  });
  const ExperimentUpdate update = Run();
  EXPECT_EQ(Loop(update, gone, 2).state, MeasureState::kRefused);
  EXPECT_THAT(Loop(update, gone, 2).reason, HasSubstr("had ended"));
  EXPECT_EQ(Loop(update, here, 2).state, MeasureState::kMeasured);
}

TEST_F(RevisedOrdersTest, LoopsThatTheBudgetDoesNotBuyAreNotInstalled) {
  FakeRank& rank = AddRank();
  request_.plan.budget.overhead_ratio = 9e-6;  // 0.9 ms in all: 0.4 are spent, 0.6 are needed
  At(rank, "live", 2, [&] {
    clock_.step_ns = kNsPerSecond;
    experimenter_->Revise(Order(2, {0, 1, 2}));
  });
  const ExperimentUpdate update = Run();
  EXPECT_THAT(rank.log.added, IsEmpty());
  EXPECT_EQ(Loop(update, rank, 2).state, MeasureState::kOpen);
  EXPECT_THAT(Loop(update, rank, 2).reason, HasSubstr("does not buy the stops"));
  ExpectNothingLeft(rank);
}

TEST_F(RevisedOrdersTest, LoopsAreInstalledOnceTheyAreEarned) {
  FakeRank& rank = AddRank();
  request_.plan.budget.overhead_ratio = 2e-5;  // 2 ms in 100 s, 0.2 ms of them ahead
  int64_t added_ns = 0;
  rank.truth.on_call = [&, lives = 0](const std::string& call) mutable {
    if (call == "live" && ++lives == 2) {
      clock_.step_ns = 100 * kNsPerMs;
      experimenter_->Revise(Order(2, {0, 1, 2}));
    }
    if (call == "add") added_ns = clock_.now_ns;
  };
  Run();
  ASSERT_NE(added_ns, 0);
  // 0.4 ms were spent and 0.6 are needed: (1.0 - 0.2) / 2e-5 s.
  EXPECT_GT(added_ns - request_.begin_ns, 35 * kNsPerSecond);
}

TEST_F(RevisedOrdersTest, ALoopThatIsStillWaitingAtTheEndSaysSo) {
  FakeRank& rank = AddRank();
  request_.plan.budget.overhead_ratio = 2e-5;
  rank.truth.on_call = [&, lives = 0](const std::string& call) mutable {
    if (call != "live" || ++lives != 2) return;
    experimenter_->Revise(Order(2, {0, 1, 2}));
    EndElsewhere();
  };
  const ExperimentUpdate update = Run();
  ASSERT_THAT(Of(update, rank), SizeIs(3)) << "whether the order was still taken up or not";
  for (const LoopMeasurement& loop : Of(update, rank)) {
    EXPECT_EQ(loop.state, MeasureState::kOpen);
    EXPECT_THAT(loop.reason, HasSubstr("ended first"));
  }
  EXPECT_THAT(rank.log.added, IsEmpty());
}

TEST_F(RevisedOrdersTest, AnOrderAfterTheEndGetsTheReasonForItsNewLoops) {
  FakeRank& first = AddRank();
  FakeRank& second = AddRank();
  Run();
  experimenter_->Revise(Order(2, {0, 2, 3}));
  const ExperimentUpdate update = experimenter_->Drain();
  for (const FakeRank* rank : {&first, &second}) {
    ASSERT_THAT(Of(update, *rank), SizeIs(2)) << "what is measured stays as it is";
    for (const int loop : {2, 3}) {
      EXPECT_EQ(Loop(update, *rank, loop).state, MeasureState::kOpen);
      EXPECT_THAT(Loop(update, *rank, loop).reason, HasSubstr("ended first"));
      EXPECT_THAT(Loop(update, *rank, loop).open, ElementsAre("LS", "FP", "DL1"));
    }
    EXPECT_EQ(Calls(*rank, "add"), 0);
  }
  experimenter_->Revise(Order(2, {4}));
  EXPECT_THAT(experimenter_->Drain().measurements, IsEmpty()) << "it is not newer";
}

TEST_F(RevisedOrdersTest, AfterTheKillSwitchLaterLoopsSayWhyNothingComesOfThem) {
  FakeRank& rank = AddRank();
  At(rank, "shadow", 2, [&] { CreateDisableFile(); });
  Run();
  experimenter_->Revise(Order(2, {0, 1, 2}));
  const LoopMeasurement later = Loop(experimenter_->Drain(), rank, 2);
  EXPECT_EQ(later.state, MeasureState::kOpen);
  EXPECT_THAT(later.reason, HasSubstr(disable_file_));
}

TEST_F(RevisedOrdersTest, WhereNothingMayBeMeasuredLaterLoopsAreRefusedLikeTheFirst) {
  FakeRank& rank = AddRank();
  CreateDisableFile();
  const LoopMeasurement first = Loop(Run(), rank, 0);
  experimenter_->Revise(Order(2, {0, 1, 2}));
  const ExperimentUpdate update = experimenter_->Drain();
  EXPECT_THAT(Of(update, rank), SizeIs(1));
  EXPECT_EQ(Loop(update, rank, 2).state, MeasureState::kRefused);
  EXPECT_EQ(Loop(update, rank, 2).reason, first.reason);
  EXPECT_GT(Loop(update, rank, 2).revision, first.revision);
}

TEST_F(RevisedOrdersTest, AfterTheEndARankWithoutALabStillGivesItsOwnReason) {
  FakeRank& bad = AddRank();
  AddRank();
  bad.open_status = absl::FailedPreconditionError("it has a seccomp filter");
  Run();
  experimenter_->Revise(Order(2, {2}));
  const LoopMeasurement later = Loop(experimenter_->Drain(), bad, 2);
  EXPECT_EQ(later.state, MeasureState::kRefused);
  EXPECT_EQ(later.reason, "it has a seccomp filter");
}

TEST_F(RevisedOrdersTest, ALoopThatIsHotAgainAfterTheEndSaysThatNotThatItIsHotNoMore) {
  FakeRank& rank = AddRank();
  request_.plan.variants = {"LS", "FP", "DL1", "NO_DIV", "NO_RED", "S2L", "NO_STORE"};
  At(rank, "shadow", 3, [&] { experimenter_->Revise(Order(2, {1})); });
  EXPECT_THAT(Loop(Run(), rank, 0).reason, HasSubstr("hot no more"));
  experimenter_->Revise(Order(3, {0, 1}));
  const ExperimentUpdate update = experimenter_->Drain();
  EXPECT_THAT(Of(update, rank), SizeIs(1));
  EXPECT_EQ(Loop(update, rank, 0).state, MeasureState::kOpen);
  EXPECT_THAT(Loop(update, rank, 0).reason, HasSubstr("ended first"));
  EXPECT_THAT(Loop(update, rank, 0).figures, Not(IsEmpty())) << "what is known stays";
  ExpectNothingLeft(rank);
}

TEST_F(RevisedOrdersTest, TheNumberOfLoopsIsBounded) {
  FakeRank& rank = AddRank();
  std::vector<int> many;
  for (int i = 0; i < 70; ++i) many.push_back(i);
  At(rank, "shadow", 1, [&] { experimenter_->Revise(Order(2, many)); });
  const ExperimentUpdate update = Run();
  EXPECT_EQ(rank.log.added.size(), size_t{62});
  EXPECT_EQ(Loop(update, rank, 63).state, MeasureState::kMeasured);
  EXPECT_EQ(Loop(update, rank, 64).state, MeasureState::kRefused);
  EXPECT_THAT(Loop(update, rank, 69).reason, HasSubstr("at most 64 loops"));
}

TEST_F(RevisedOrdersTest, EndBreaksWhatWaitsForARank) {
  FakeRank& rank = AddRank();
  bool before = true, after = false;
  rank.truth.on_call = [&, done = false](const std::string& call) mutable {
    if (call != "shadow" || std::exchange(done, true)) return;
    before = rank.options.cancelled();
    EndElsewhere();
    after = rank.options.cancelled();
  };
  Run();
  EXPECT_FALSE(before);
  EXPECT_TRUE(after);
}

TEST_F(RevisedOrdersTest, NoStepWaitsIntoTheReserve) {
  FakeRank& rank = AddRank();
  rank.truth.entries_per_second = 1e-3;  // a hundred entries: ten seconds, as long as anybody waits
  duration_ns_ = 5 * kNsPerSecond;
  clock_.step_ns = 10 * kNsPerMs;
  Run();
  ASSERT_THAT(rank.log.waits_ns, Not(IsEmpty()));
  for (int64_t wait : rank.log.waits_ns) EXPECT_LE(wait, 4 * kNsPerSecond);
}

TEST_F(RevisedOrdersTest, AnotherRankShowsTheCodeWhenTheFirstCannot) {
  FakeRank& refusing = AddRank();
  FakeRank& able = AddRank();
  FakeRank& other = AddRank();
  refusing.truth.shadow_status = absl::FailedPreconditionError("no memory headroom");
  const ExperimentUpdate update = Run();
  EXPECT_THAT(Loop(update, refusing, 0).listings, IsEmpty());
  EXPECT_THAT(Loop(update, able, 0).listings, Not(IsEmpty()));
  EXPECT_THAT(Loop(update, other, 0).listings, IsEmpty());
}

TEST_F(RevisedOrdersTest, ARankThatDoesNotOpenDoesNotHideTheCode) {
  FakeRank& bad = AddRank();
  FakeRank& able = AddRank();
  bad.open_status = absl::FailedPreconditionError("it has a seccomp filter");
  EXPECT_THAT(Loop(Run(), able, 0).listings, Not(IsEmpty()));
}

TEST_F(RevisedOrdersTest, WhatIsDroppedFromTheNewsIsCounted) {
  FakeRank& rank = AddRank();
  rank.truth.on_call = [&rank](const std::string& call) {
    if (call != "install") return;
    for (int i = 0; i < 4096 + 7; ++i) rank.options.audit({});
  };
  const ExperimentUpdate update = Run();
  EXPECT_THAT(update.audit, SizeIs(4096));
  ASSERT_THAT(update.notices, SizeIs(1));
  EXPECT_EQ(update.notices[0].code, absl::StatusCode::kDataLoss);
  EXPECT_THAT(update.notices[0].text,
              HasSubstr("0 notices, 7 entries of the audit log and 0 meas"));
  EXPECT_THAT(experimenter_->Drain().notices, IsEmpty());  // told once
}

}  // namespace
}  // namespace perfd::agent
