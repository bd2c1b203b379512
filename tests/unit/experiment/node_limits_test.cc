// A NodeExperimenter that is told to stop, has no budget left, or may not alter anything.
#include "tests/unit/experiment/node_fixture.h"

namespace perfd::agent {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Moment {
  const char* call;
  int nth;
};

class CancelTest : public NodeExperimenterTest, public ::testing::WithParamInterface<Moment> {};

TEST_P(CancelTest, TakesEverythingOutAndKeepsWhatIsKnown) {
  FakeRank& rank = AddRank();
  rank.truth.saturation = {{"LS", 0.9}};
  request_.plan.variants = {"LS", "FP", "DL1", "NO_DIV", "NO_RED", "S2L", "NO_STORE"};
  EndAt(rank, GetParam().call, GetParam().nth);
  const ExperimentUpdate update = Run();
  ASSERT_TRUE(ended_) << "the moment never came";
  ExpectNothingLeft(rank);
  const auto loops = Of(update, rank);
  ASSERT_THAT(loops, SizeIs(2));
  const bool measured = std::string(GetParam().call) == "uninstall";
  for (const LoopMeasurement& loop : loops) {
    if (measured) {
      EXPECT_EQ(loop.state, MeasureState::kMeasured);
      continue;
    }
    EXPECT_EQ(loop.state, MeasureState::kOpen);
    EXPECT_THAT(loop.reason, HasSubstr("ended first"));
    EXPECT_THAT(loop.open, Contains("NO_STORE"));
  }
  // Nothing but the restoring after the step under way.
  const auto& calls = rank.log.calls;
  int seen = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i] != GetParam().call || ++seen != GetParam().nth) continue;
    for (size_t later = i + 1; later < calls.size(); ++later)
      EXPECT_TRUE(calls[later] == "uninstall" || calls[later] == "patch") << calls[later];
  }
  EXPECT_THAT(update.notices, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(InEveryState, CancelTest,
                         ::testing::Values(Moment{"open", 1}, Moment{"install", 1},
                                           Moment{"entry_count", 1}, Moment{"entry_count", 2},
                                           Moment{"live", 1}, Moment{"live", 2},
                                           Moment{"shadow", 1}, Moment{"shadow", 3},
                                           Moment{"shadow", 4}, Moment{"uninstall", 1}),
                         [](const auto& moment) {
                           return absl::StrCat(moment.param.call, moment.param.nth);
                         });

TEST_F(NodeExperimenterTest, CancelReachesAllRanks) {
  FakeRank& first = AddRank();
  FakeRank& second = AddRank();
  EndAt(second, "shadow", 2);
  Run();
  ExpectNothingLeft(first);
  ExpectNothingLeft(second);
  EXPECT_LE(Calls(first, "shadow"), 2);
}

TEST_F(NodeExperimenterTest, EndBeforeBeginAndTwiceDoesNothing) {
  NodeExperimenter experimenter({});
  experimenter.End();
  experimenter.End();
  EXPECT_THAT(experimenter.Drain().measurements, IsEmpty());
}

TEST_F(NodeExperimenterTest, ABudgetThatBuysNothingRunsNoShadow) {
  FakeRank& rank = AddRank();
  clock_.step_ns = kNsPerSecond;
  request_.plan.budget.overhead_ratio = 1e-7;  // 0.1 ms in all
  const ExperimentUpdate update = Run();
  EXPECT_EQ(Calls(rank, "shadow"), 0);
  for (const LoopMeasurement& loop : Of(update, rank)) {
    EXPECT_EQ(loop.state, MeasureState::kOpen);
    EXPECT_THAT(loop.reason, HasSubstr("does not buy the next shadow"));
    EXPECT_THAT(loop.reason, HasSubstr("0 ms are left"));
    EXPECT_THAT(loop.open, SizeIs(3));
  }
  ExpectNothingLeft(rank);
}

// 4 ms in all; time passes fast only while nothing else is done but waiting.
class BudgetTest : public NodeExperimenterTest {
 protected:
  BudgetTest() {
    duration_ns_ = 30 * kNsPerSecond;
    request_.plan.budget.overhead_ratio = 4e-3 / 30;
    request_.plan.variants = {"LS", "FP", "DL1", "NO_DIV", "NO_RED", "S2L", "NO_STORE"};
    clock_.on_probe = [this] { clock_.step_ns = ++probes_ > 6 ? kNsPerSecond : kNsPerMs; };
  }
  FakeRank& AddCountingRank() {
    FakeRank& rank = AddRank();
    rank.truth.on_call = [this](const std::string&) { probes_ = 0; };
    return rank;
  }
  static int64_t Spent(const std::vector<LoopMeasurement>& loops) {
    int64_t spent = 0;
    for (const LoopMeasurement& loop : loops)
      spent += loop.cost.pause_ns + loop.cost.later_fault_ns;
    return spent;
  }

  std::atomic<int> probes_ = 0;
};

TEST_F(BudgetTest, IsKeptAndWhatItDidNotBuyIsListed) {
  FakeRank& rank = AddCountingRank();
  const std::vector<LoopMeasurement> loops = Of(Run(), rank);
  size_t open = 0;
  for (const LoopMeasurement& loop : loops) {
    open += loop.open.size();
    EXPECT_NE(loop.state, MeasureState::kRefused);
  }
  EXPECT_GT(rank.log.shadows, 2);
  // Of 4 ms 35 % are kept back, for surprises and for the end; a last round does not fit in every rest.
  EXPECT_GT(Spent(loops), 3 * kNsPerMs / 2);
  EXPECT_LT(Spent(loops), 4 * kNsPerMs);
  EXPECT_GT(open, size_t{0});
  ExpectNothingLeft(rank);
}

TEST_F(BudgetTest, ShadowsThatCostMoreThanPredictedAreNotRepeated) {
  FakeRank& rank = AddCountingRank();
  rank.truth.pause_factor = 8;
  const std::vector<LoopMeasurement> loops = Of(Run(), rank);
  EXPECT_EQ(rank.log.shadows, 1);
  EXPECT_LT(Spent(loops), 5 * kNsPerMs);
}

// The stops of the injector took 0.4 ms, and the first shadow is of as many; ahead of time only 0.2 ms are earned.
TEST_F(NodeExperimenterTest, WaitsUntilTheShadowIsEarned) {
  FakeRank& rank = AddRank();
  duration_ns_ = 60 * kNsPerSecond;
  request_.plan.budget.overhead_ratio = 2e-5;
  int64_t first_shadow_ns = 0;
  rank.truth.on_call = [&](const std::string& call) {
    if (call == "live") clock_.step_ns = 2 * kNsPerSecond;
    if (call == "shadow" && first_shadow_ns == 0) first_shadow_ns = clock_.now_ns;
  };
  Run();
  ASSERT_NE(first_shadow_ns, 0);
  EXPECT_GT(first_shadow_ns - request_.begin_ns, 15 * kNsPerSecond);
}

TEST_F(NodeExperimenterTest, StopsInTimeBeforeTheEndOfTheProfile) {
  FakeRank& rank = AddRank();
  clock_.step_ns = 100 * kNsPerMs;
  duration_ns_ = 3 * kNsPerSecond;
  int64_t last_step_ns = 0;
  rank.truth.on_call = [&](const std::string& call) {
    if (call == "entry_count" || call == "live" || call == "shadow") last_step_ns = clock_.now_ns;
  };
  const ExperimentUpdate update = Run();
  ASSERT_NE(last_step_ns, 0);
  EXPECT_LT(last_step_ns, request_.end_ns - kNsPerSecond + 2 * clock_.step_ns);
  for (const LoopMeasurement& loop : Of(update, rank)) {
    EXPECT_EQ(loop.state, MeasureState::kOpen);
    EXPECT_THAT(loop.reason, HasSubstr("the profile ended first"));
  }
  ExpectNothingLeft(rank);
}

TEST_F(NodeExperimenterTest, WhileTheDisableFileExistsNothingIsOpened) {
  FakeRank& rank = AddRank();
  CreateDisableFile();
  const ExperimentUpdate update = Run();
  EXPECT_EQ(rank.opens, 0);
  ASSERT_THAT(update.notices, SizeIs(1));
  EXPECT_EQ(update.notices[0].severity, Notice::Severity::kWarning);
  EXPECT_THAT(update.notices[0].text, HasSubstr(disable_file_));
}

TEST_F(NodeExperimenterTest, TheDisableFileEndsWhatIsUnderWay) {
  FakeRank& rank = AddRank();
  rank.truth.on_call = [&](const std::string& call) {
    if (call == "shadow") CreateDisableFile();
  };
  const ExperimentUpdate update = Run();
  EXPECT_EQ(Calls(rank, "shadow"), 1);
  EXPECT_THAT(update.notices,
              ::testing::ElementsAre(Field(&Notice::text, HasSubstr("variants were stopped"))));
  ExpectNothingLeft(rank);
  EXPECT_THAT(Of(update, rank), Each(Field(&LoopMeasurement::state, MeasureState::kOpen)));
}

TEST_F(NodeExperimenterTest, TheDisableFileEndsTheWaitForCredit) {
  FakeRank& rank = AddRank();
  request_.plan.budget.overhead_ratio = 1e-5;  // the first shadow is earned much later
  std::atomic<int> probes = -1;
  rank.truth.on_call = [&, lives = 0](const std::string& call) mutable {
    if (call == "live" && ++lives == 2) probes = 0;
  };
  // Time is looked at thrice before the waiting begins.
  clock_.on_probe = [&] {
    if (probes >= 0 && ++probes == 5) CreateDisableFile();
  };
  Run();
  EXPECT_EQ(Calls(rank, "shadow"), 0);
  ExpectNothingLeft(rank);
}

TEST_F(NodeExperimenterTest, TheReasonIsTheDisableFile) {
  FakeRank& rank = AddRank();
  rank.truth.on_call = [&](const std::string& call) {
    if (call == "shadow") CreateDisableFile();
  };
  const ExperimentUpdate update = Run();
  EXPECT_THAT(Of(update, rank), Each(Field(&LoopMeasurement::reason, HasSubstr(disable_file_))));
}

TEST_F(NodeExperimenterTest, NothingIsOpenedThatTheSiteDoesNotAllow) {
  FakeRank& rank = AddRank();
  allowed_ = false;
  const ExperimentUpdate update = Run();
  EXPECT_EQ(rank.opens, 0);
  EXPECT_THAT(Of(update, rank), Each(Field(&LoopMeasurement::state, MeasureState::kRefused)));
  EXPECT_THAT(Of(update, rank),
              Each(Field(&LoopMeasurement::reason, HasSubstr("injection.allowed"))));
}

TEST_F(NodeExperimenterTest, WhatTheSiteAllowsNoMoreEnds) {
  FakeRank& rank = AddRank();
  rank.truth.on_call = [&](const std::string& call) {
    if (call == "shadow") allowed_ = false;
  };
  const ExperimentUpdate update = Run();
  EXPECT_EQ(Calls(rank, "shadow"), 1);
  EXPECT_THAT(Of(update, rank),
              Each(Field(&LoopMeasurement::reason, HasSubstr("injection.allowed"))));
  ExpectNothingLeft(rank);
}

TEST_F(NodeExperimenterTest, LoopsThatMayNotBeMeasuredSayWhy) {
  FakeRank& rank = AddRank();
  CreateDisableFile();
  const ExperimentUpdate update = Run();
  ASSERT_THAT(Of(update, rank), SizeIs(2));
  EXPECT_THAT(Of(update, rank), Each(Field(&LoopMeasurement::state, MeasureState::kRefused)));
  EXPECT_THAT(Of(update, rank), Each(Field(&LoopMeasurement::reason, HasSubstr(disable_file_))));
}

TEST_F(NodeExperimenterTest, RanksThatWereNotReachedSayWhy) {
  FakeRank& first = AddRank();
  FakeRank& second = AddRank();
  EndAt(first, "install");
  const ExperimentUpdate update = Run();
  EXPECT_EQ(second.opens, 0);
  ASSERT_THAT(Of(update, second), SizeIs(2));
  EXPECT_THAT(Of(update, second), Each(Field(&LoopMeasurement::reason, HasSubstr("ended first"))));
}

TEST_F(NodeExperimenterTest, JumpsOfLoopsThatAreGivenUpAreTakenOutAtOnce) {
  FakeRank& rank = AddRank();
  clock_.step_ns = kNsPerSecond;
  request_.plan.budget.overhead_ratio = 1e-7;
  Run();
  using ::testing::Pair;
  EXPECT_THAT(rank.log.patches, ::testing::ElementsAre(Pair(0, false), Pair(1, false)));
}

}  // namespace
}  // namespace perfd::agent
