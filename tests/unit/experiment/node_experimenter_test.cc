#include "agent/experiment/node_experimenter.h"

#include <signal.h>

#include "tests/unit/experiment/node_fixture.h"

namespace perfd::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

void Suspend(const FakeRank& rank) {
  kill(rank.places.rank.pid, SIGSTOP);
  while (ProcFs().Stamp(rank.places.rank.pid)->state != 'T') absl::SleepFor(absl::Milliseconds(1));
}

TEST_F(NodeExperimenterTest, MeasuresEveryLoopOfEveryRankAndLeavesNothing) {
  FakeRank& first = AddRank();
  FakeRank& second = AddRank();
  first.truth.saturation = {{"LS", 0.9}, {"FP", 0.2}};
  second.truth.saturation = {{"LS", 0.3}, {"FP", 0.95}};
  const ExperimentUpdate update = Run();
  EXPECT_THAT(update.notices, IsEmpty());
  EXPECT_THAT(update.measurements, SizeIs(4));
  for (const FakeRank* rank : {&first, &second}) {
    const std::vector<LoopMeasurement> loops = Of(update, *rank);
    ASSERT_THAT(loops, SizeIs(2));
    for (const LoopMeasurement& loop : loops) {
      EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
      EXPECT_EQ(loop.profile_id, "p1");
      EXPECT_EQ(loop.node, "n1");
      EXPECT_EQ(loop.rank, rank->places.rank.rank);
      EXPECT_GT(loop.cost.shadows, 0u);
    }
    EXPECT_EQ(loops[0].loop_id, "loop0");
    EXPECT_EQ(loops[1].loop_id, "loop1");
    EXPECT_EQ(rank->log.uninstalls, 1);
    ExpectNothingLeft(*rank);
  }
  const auto saturation = [&](const FakeRank& rank) {
    const LoopMeasurement loop = Of(update, rank)[1];
    for (const VariantFigures& f : loop.figures) {
      if (f.variant == "LS" && f.thread == kTeam) return f.saturation.value;
    }
    return 0.0;
  };
  EXPECT_NEAR(saturation(first), 0.9, 0.02);
  EXPECT_NEAR(saturation(second), 0.3, 0.02);
}

TEST_F(NodeExperimenterTest, TheStopsOfAllRanksAreTold) {
  AddRank();
  AddRank();
  const ExperimentUpdate update = Run();
  EXPECT_EQ(update.stops, 4u) << "two of each rank, whatever the number of loops";
  EXPECT_EQ(update.stop_ns, 800'000u);
  EXPECT_EQ(experimenter_->Drain().stops, 0u);
}

TEST_F(NodeExperimenterTest, LabsGetTheLimitsOfTheOrder) {
  FakeRank& rank = AddRank();
  request_.plan.budget.stop_ns = 7;
  request_.plan.budget.shadow_ns = 400 * kNsPerMs;
  Run();
  EXPECT_EQ(rank.opens, 1);
  EXPECT_EQ(rank.options.max_stop_ns, 7);
  EXPECT_EQ(rank.options.max_shadow_ns, 400 * kNsPerMs);
  EXPECT_EQ(rank.options.journal, &*journal_);
}

// The site and the request: each alone is not enough.
TEST_F(NodeExperimenterTest, RecoveryNeedsBothOptIns) {
  for (const bool site : {false, true}) {
    for (const bool request : {false, true}) {
      ranks_.clear();
      FakeRank& rank = AddRank();
      allow_recovery_ = site;
      request_.ranks.clear();
      request_.plan.recovery = request;
      Run();
      EXPECT_EQ(rank.options.recovery, site && request) << site << request;
    }
  }
}

TEST_F(NodeExperimenterTest, TheAuditLogNamesWhoAskedAndWhatWasTouched) {
  FakeRank& rank = AddRank();
  rank.truth.on_call = [&rank](const std::string& call) {
    AuditEntry entry;
    entry.action = call;
    entry.outcome = "ok";
    if (call == "install") entry.unix_ns = 42;
    if (call == "install" || call == "uninstall") rank.options.audit(entry);
  };
  const ExperimentUpdate update = Run();
  ASSERT_THAT(update.audit, SizeIs(2));
  for (const AuditEntry& entry : update.audit) {
    EXPECT_EQ(entry.profile_id, "p1");
    EXPECT_EQ(entry.origin.requester, "alice");
    EXPECT_EQ(entry.node, "n1");
    EXPECT_EQ(entry.pid, rank.places.rank.pid);
  }
  EXPECT_EQ(update.audit[0].unix_ns, 42);  // the injector's own time stays
  EXPECT_EQ(update.audit[1].unix_ns, clock_.UnixNs());
}

TEST_F(NodeExperimenterTest, NewsAreToldOnceAndRevisionsGrow) {
  FakeRank& rank = AddRank();
  std::vector<uint64_t> revisions;
  std::atomic<size_t> seen = 0;
  rank.truth.on_call = [&](const std::string& call) {
    if (call != "shadow" && call != "live") return;
    for (const LoopMeasurement& loop : experimenter_->Drain().measurements) {
      revisions.push_back(loop.revision);
      ++seen;
    }
  };
  const ExperimentUpdate update = Run();
  for (const LoopMeasurement& loop : update.measurements) revisions.push_back(loop.revision);
  ASSERT_GT(seen, size_t{2});
  for (size_t i = 1; i < revisions.size(); ++i) EXPECT_GT(revisions[i], revisions[i - 1]);
  // Greater than those of an agent that was here before.
  EXPECT_GT(revisions[0], static_cast<uint64_t>(clock_.UnixNs()));
  EXPECT_THAT(update.measurements, SizeIs(2));  // the last word of each loop
  EXPECT_THAT(experimenter_->Drain().measurements, IsEmpty());
}

TEST_F(NodeExperimenterTest, ShadowsOfAllRanksRunAtTheSameTime) {
  // Each waits for the other: one after the other would wait for ever.
  std::atomic<int> arrived = 0;
  std::atomic<bool> alone = false;
  for (int i = 0; i < 2; ++i) {
    FakeRank& rank = AddRank();
    rank.truth.on_call = [&, first = true](const std::string& call) mutable {
      if (call != "shadow" || !std::exchange(first, false)) return;
      ++arrived;
      const int64_t deadline = SystemClock().MonotonicNs() + 10 * kNsPerSecond;
      while (arrived < 2 && SystemClock().MonotonicNs() < deadline) std::this_thread::yield();
      if (arrived < 2) alone = true;
    };
  }
  Run();
  EXPECT_EQ(arrived, 2);
  EXPECT_FALSE(alone);
}

TEST_F(NodeExperimenterTest, AllLoopsAreLookedAtBeforeOneIsMeasured) {
  FakeRank& rank = AddRank();
  Run();
  const auto& calls = rank.log.calls;
  const auto first_shadow = std::find(calls.begin(), calls.end(), "shadow");
  EXPECT_EQ(std::count(calls.begin(), first_shadow, "entry_count"), 2);
  EXPECT_EQ(std::count(calls.begin(), first_shadow, "live"), 2);
}

// The place of the loop whose first shadow comes first, when runs of the heavier one take `factor` times as long.
class OrderOfLoopsTest : public NodeExperimenterTest {
 protected:
  int32_t FirstScanned(double factor) {
    FakeRank& rank = AddRank();
    int timed = 0;
    int32_t first = -1;
    rank.truth.on_call = [&](const std::string& call) { timed += call == "live" ? 1 : 0; };
    rank.truth.live_of_call = [&, factor] { return timed == 1 ? factor : 1.0; };
    rank.truth.on_shadow = [&](const ShadowRequest& request, ShadowAnswer&) {
      if (first < 0) first = request.loop;
      return absl::OkStatus();
    };
    Run();
    return first;
  }
};

TEST_F(OrderOfLoopsTest, OneThatIsMuchDearerWaits) {
  EXPECT_EQ(FirstScanned(10), 1);
}

TEST_F(OrderOfLoopsTest, OneThatIsHeavierMayBeDearer) {
  EXPECT_EQ(FirstScanned(1.5), 0);
}

TEST_F(NodeExperimenterTest, RefusedLoopsDoNotHoldUpTheOthers) {
  FakeRank& rank = AddRank();
  rank.places.loops[0] = RefusedSite(0, "the rank runs another build of /own");
  const ExperimentUpdate update = Run();
  const auto loops = Of(update, rank);
  ASSERT_THAT(loops, SizeIs(2));
  EXPECT_EQ(loops[0].state, MeasureState::kRefused);
  EXPECT_EQ(loops[0].reason, "the rank runs another build of /own");
  EXPECT_EQ(loops[1].state, MeasureState::kMeasured);
  ExpectNothingLeft(rank);
}

TEST_F(NodeExperimenterTest, ARankWhoseLoopsAreAllRefusedIsNotTouched) {
  FakeRank& rank = AddRank();
  rank.places.loops = {RefusedSite(0, "a"), RefusedSite(1, "b")};
  const ExperimentUpdate update = Run();
  EXPECT_THAT(Of(update, rank), ElementsAre(Field(&LoopMeasurement::reason, "a"),
                                            Field(&LoopMeasurement::reason, "b")));
  EXPECT_THAT(rank.log.calls, IsEmpty());
}

TEST_F(NodeExperimenterTest, ALabThatDoesNotOpenRefusesItsRankOnly) {
  FakeRank& bad = AddRank();
  FakeRank& good = AddRank();
  bad.open_status = absl::FailedPreconditionError("it has a seccomp filter");
  const ExperimentUpdate update = Run();
  const auto loops = Of(update, bad);
  ASSERT_THAT(loops, SizeIs(2));
  for (const LoopMeasurement& loop : loops) {
    EXPECT_EQ(loop.state, MeasureState::kRefused);
    EXPECT_EQ(loop.reason, "it has a seccomp filter");
    EXPECT_EQ(loop.profile_id, "p1");
    EXPECT_EQ(loop.node, "n1");
    EXPECT_EQ(loop.rank, 0);
    EXPECT_NE(loop.location_key, "");
    EXPECT_GT(loop.revision, static_cast<uint64_t>(clock_.UnixNs()));
  }
  EXPECT_NE(loops[0].revision, loops[1].revision);
  ASSERT_THAT(update.notices, SizeIs(1));
  EXPECT_EQ(update.notices[0].severity, Notice::Severity::kWarning);
  EXPECT_EQ(update.notices[0].pid, bad.places.rank.pid);
  EXPECT_THAT(update.notices[0].text, HasSubstr("is not injected into: it has a seccomp filter"));
  EXPECT_EQ(Of(update, good)[0].state, MeasureState::kMeasured);
  ExpectNothingLeft(good);
}

TEST_F(NodeExperimenterTest, ASuspendedRankIsOpenedWhenItRunsAgain) {
  FakeRank& first = AddRank();
  FakeRank& second = AddRank();
  Suspend(second);
  bool resumed = false;
  first.truth.on_call = [&](const std::string& call) {
    if (call != "shadow" || resumed) return;
    EXPECT_EQ(second.opens, 0);
    kill(second.places.rank.pid, SIGCONT);
    resumed = true;
  };
  const ExperimentUpdate update = Run();
  for (const FakeRank* rank : {&first, &second}) {
    const std::vector<LoopMeasurement> loops = Of(update, *rank);
    ASSERT_THAT(loops, SizeIs(2));
    for (const LoopMeasurement& loop : loops)
      EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
    EXPECT_EQ(rank->opens, 1);
    ExpectNothingLeft(*rank);
  }
}

TEST_F(NodeExperimenterTest, ARankThatStaysSuspendedIsLeftOpenAndUntouched) {
  FakeRank& rank = AddRank();
  Suspend(rank);
  sleep_ = [this](int64_t ns) { clock_.now_ns += ns; };
  const ExperimentUpdate update = Run();
  ASSERT_THAT(Of(update, rank), SizeIs(2));
  for (const LoopMeasurement& loop : Of(update, rank)) {
    EXPECT_EQ(loop.state, MeasureState::kOpen);
    EXPECT_THAT(loop.reason, HasSubstr("is suspended (SIGSTOP)"));
  }
  EXPECT_EQ(rank.opens, 0);
  kill(rank.places.rank.pid, SIGCONT);
}

TEST_F(NodeExperimenterTest, AnInstallThatFailsRefusesItsRankOnly) {
  FakeRank& bad = AddRank();
  FakeRank& good = AddRank();
  bad.truth.install_answers = {absl::FailedPreconditionError("another tracer holds it")};
  const ExperimentUpdate update = Run();
  for (const LoopMeasurement& loop : Of(update, bad)) {
    EXPECT_EQ(loop.state, MeasureState::kRefused);
    EXPECT_EQ(loop.reason, "another tracer holds it");
  }
  EXPECT_EQ(bad.log.uninstalls, 1);  // a failed one may have left something
  EXPECT_EQ(Of(update, good)[1].state, MeasureState::kMeasured);
}

// Each step fails in the way that does not pass.
class FailingStepTest : public NodeExperimenterTest,
                        public ::testing::WithParamInterface<absl::Status FakeTruth::*> {};

TEST_P(FailingStepTest, RefusesTheLoopWithItsReasonAndOtherRanksGoOn) {
  FakeRank& bad = AddRank();
  FakeRank& good = AddRank();
  bad.truth.*GetParam() = absl::FailedPreconditionError("no memory headroom");
  const ExperimentUpdate update = Run();
  for (const LoopMeasurement& loop : Of(update, bad)) {
    EXPECT_EQ(loop.state, MeasureState::kRefused);
    EXPECT_EQ(loop.reason, "no memory headroom");
  }
  for (const LoopMeasurement& loop : Of(update, good))
    EXPECT_EQ(loop.state, MeasureState::kMeasured);
  ExpectNothingLeft(bad);
  ExpectNothingLeft(good);
}

TEST_P(FailingStepTest, WhatPassesIsTriedAgainAndThenLeftOpen) {
  FakeRank& bad = AddRank();
  bad.truth.*GetParam() = absl::UnavailableError("not at this moment");
  const ExperimentUpdate update = Run();
  for (const LoopMeasurement& loop : Of(update, bad)) {
    EXPECT_EQ(loop.state, MeasureState::kOpen);
    EXPECT_EQ(loop.reason, "not at this moment");
  }
  ExpectNothingLeft(bad);
  for (const std::string call : {"entry_count", "live", "shadow"}) {
    if (Calls(bad, call) > 2) {
      EXPECT_EQ(Calls(bad, call), 2 * 4) << "four times for each loop";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EachStep, FailingStepTest,
                         ::testing::Values(&FakeTruth::entry_count_status, &FakeTruth::live_status,
                                           &FakeTruth::shadow_status));

// The rank ends before the nth thing that is asked of it, whatever that is.
class DyingRankTest : public NodeExperimenterTest, public ::testing::WithParamInterface<int> {};

TEST_P(DyingRankTest, IsSaidToHaveEndedAndNeedsNoHealing) {
  FakeRank& dying = AddRank();
  FakeRank& living = AddRank();
  dying.truth.calls_to_live = GetParam();
  const ExperimentUpdate update = Run();
  const auto loops = Of(update, dying);
  ASSERT_THAT(loops, SizeIs(2));
  for (const LoopMeasurement& loop : loops) {
    if (loop.state == MeasureState::kMeasured) continue;  // before it died
    EXPECT_EQ(loop.state, MeasureState::kRefused);
    EXPECT_THAT(loop.reason, HasSubstr("the process has ended"));
  }
  EXPECT_THAT(update.notices, IsEmpty());
  EXPECT_EQ(dying.log.uninstalls, 1);
  for (const LoopMeasurement& loop : Of(update, living))
    EXPECT_EQ(loop.state, MeasureState::kMeasured);
  ExpectNothingLeft(living);
}

INSTANTIATE_TEST_SUITE_P(AtEachCall, DyingRankTest, ::testing::Range(0, 14));

TEST_F(NodeExperimenterTest, WhatCannotBeTakenOutIsSaidWithTheRemedy) {
  FakeRank& rank = AddRank();
  rank.truth.uninstall_answers.assign(9, absl::UnavailableError("a thread is in the way"));
  const ExperimentUpdate update = Run();
  ASSERT_THAT(update.notices, SizeIs(1));
  EXPECT_EQ(update.notices[0].severity, Notice::Severity::kError);
  EXPECT_EQ(update.notices[0].pid, rank.places.rank.pid);
  EXPECT_THAT(update.notices[0].text, HasSubstr("a thread is in the way"));
  EXPECT_THAT(update.notices[0].text,
              HasSubstr(absl::StrCat("perf-agent heal ", rank.places.rank.pid)));
  EXPECT_THAT(update.measurements, SizeIs(2));  // what was measured is kept
}

TEST_F(NodeExperimenterTest, AddressesOfCopiesAreThoseOfTheirRank) {
  FakeRank& rank = AddRank();
  std::optional<RuntimeAddress> during;
  rank.truth.on_call = [&](const std::string& call) {
    if (call == "shadow") during = experimenter_->OriginalAddress(rank.places.rank.pid, 0x1001);
  };
  Run();
  EXPECT_EQ(during, 0x1000u);
  EXPECT_EQ(experimenter_->OriginalAddress(1, 0x1001), std::nullopt);
}

TEST_F(NodeExperimenterTest, WithoutRanksThereIsNothingToSay) {
  const ExperimentUpdate update = Run();
  EXPECT_THAT(update.measurements, IsEmpty());
  EXPECT_THAT(update.notices, IsEmpty());
}

TEST(AddedWallNs, PausesThatOverlapCountOnce) {
  const auto pause = [](int64_t begin, int64_t length) {
    return StepCost{.pause_begin_ns = begin, .pause_ns = length};
  };
  EXPECT_EQ(AddedWallNs({}), 0);
  EXPECT_EQ(AddedWallNs({pause(100, 10)}), 10);
  EXPECT_EQ(AddedWallNs({pause(105, 10), pause(100, 10)}), 15);
  EXPECT_EQ(AddedWallNs({pause(100, 50), pause(110, 5)}), 50);  // one inside the other
  EXPECT_EQ(AddedWallNs({pause(100, 10), pause(110, 5), pause(200, 1)}), 16);
  EXPECT_EQ(AddedWallNs({pause(100, 50), pause(110, 5), pause(120, 40)}), 60);
  EXPECT_EQ(AddedWallNs({pause(0, 10)}), 0);  // nothing stood still
}

TEST(AddedWallNs, LaterFaultsAreThoseOfTheWorstRank) {
  EXPECT_EQ(AddedWallNs({{.pause_begin_ns = 5, .pause_ns = 10, .later_ns = 3}, {.later_ns = 7}}),
            17);
}

}  // namespace
}  // namespace perfd::agent
