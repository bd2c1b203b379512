#include "agent/experiment/steps/loop_experiment.h"

#include "tests/unit/experiment/loop_fixture.h"

namespace perfd::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class LoopExperimentTest : public LoopTest {
 protected:
  static double Saturation(const LoopMeasurement& loop, const std::string& variant) {
    for (const VariantFigures& figures : loop.figures) {
      if (figures.variant == variant && figures.thread == kTeam) return figures.saturation.value;
    }
    return -1;
  }

  int Runs(Evict level) const { return log_.evicting_runs[static_cast<size_t>(level)]; }
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

TEST_F(LoopExperimentTest, VariantsThatMakeOtherPassesThanTheLoopAreRefused) {
  FakeTruth truth;
  truth.saturation = {{"LS", 0.9}, {"FP", 0.001}, {"DL1", 0.4}};
  truth.variant_trips = {{"FP", 5}, {"DL1", 4990}};  // within a percent: it may wait for others
  const LoopMeasurement loop = Run(truth, {"LS", "FP", "DL1"});
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_EQ(Saturation(loop, "FP"), -1);
  EXPECT_NEAR(Saturation(loop, "LS"), 0.9, 0.02);
  EXPECT_NEAR(Saturation(loop, "DL1"), 0.4, 0.01);
  ASSERT_EQ(loop.refusals.size(), size_t{1});
  EXPECT_EQ(loop.refusals[0].variant, "FP");
  EXPECT_THAT(loop.refusals[0].reason, HasSubstr("10 passes where the loop makes 10000"));
  EXPECT_THAT(loop.open, ElementsAre());
  for (const VariantFigures& figures : loop.figures)
    EXPECT_THAT(figures.variant, Not(HasSubstr("COUNT"))) << "a check is no measurement";
}

TEST_F(LoopExperimentTest, PassesOfAVariantAreCountedOnce) {
  FakeTruth truth;
  int checks = 0, shadows = 0;
  truth.on_shadow = [&](const ShadowRequest& request, ShadowAnswer&) {
    ++shadows;
    for (const RunSpec& run : request.runs) checks += run.variant > 4 ? 1 : 0;
    return absl::OkStatus();
  };
  Run(truth, {"LS", "FP"});
  EXPECT_EQ(checks, 2);
  EXPECT_GT(shadows, 2);
}

TEST_F(LoopExperimentTest, LoopsThatUpdateInPlaceAreRestoredBeforeEachRun) {
  FakeTruth truth;
  truth.in_situ = true;
  Run(truth, {"LS", "FP"});
  EXPECT_GT(log_.restored_runs, 10);
}

TEST_F(LoopExperimentTest, ShortInstancesLearnWhatToRestore) {
  FakeTruth truth;
  truth.in_situ = true;  // 2056 bytes: a microsecond
  Run(truth, {"LS", "FP"});
  EXPECT_EQ(log_.learning_runs, 0) << "it takes 2 % of an instance of 50 us";
  truth.ref_cycles = 4000;
  Run(truth, {"LS", "FP"});
  EXPECT_GT(log_.learning_runs, 0);
}

TEST_F(LoopExperimentTest, LoopsThatCannotRunTwiceAreTracedAlone) {
  FakeTruth truth;
  truth.in_situ = true;
  truth.memory_carried = true;
  truth.saturation = {{"LS", 0.6}};
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_NEAR(Saturation(loop, "LS"), 0.6, 0.02);
}

TEST_F(LoopExperimentTest, TracedAloneALoopMustEndWithinTheTrace) {
  FakeTruth truth;
  truth.in_situ = true;
  truth.memory_carried = true;
  truth.iterations = 20'000;
  EXPECT_THAT(Run(truth, {"LS"}).reason, HasSubstr("more than 20000 passes"));
  truth.iterations = 19'999;
  EXPECT_EQ(Run(truth, {"LS"}).state, MeasureState::kMeasured);
}

TEST_F(LoopExperimentTest, WhatIsLeftOutIsTold) {
  FakeTruth truth;
  truth.excluded_paths = {"0x10 `call 0x20`"};
  truth.iterations = 4;
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_THAT(loop.excluded_paths, ElementsAre("0x10 `call 0x20`"));
}

TEST_F(LoopExperimentTest, ALoopThatHardlyGoesRoundBetweenDetoursIsRefused) {
  FakeTruth truth;
  truth.excluded_paths = {"0x10 `call 0x20`"};
  truth.iterations = 3;
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.state, MeasureState::kRefused);
  EXPECT_THAT(loop.reason, HasSubstr("nearly every pass goes over 0x10 `call 0x20`"));
  log_.shadows = 0;
  truth.ends_by_excluded_path = 2;  // the second of three looks
  EXPECT_THAT(Run(truth, {"LS"}).reason, HasSubstr("nearly every pass"))
      << "one in three is enough";
  truth.excluded_paths.clear();
  EXPECT_EQ(Run(truth, {"LS"}).state, MeasureState::kMeasured) << "short loops are no detours";
}

TEST_F(LoopExperimentTest, ShortInstancesThatEndByThemselvesAreMeasuredThoughThereAreDetours) {
  FakeTruth truth;
  truth.excluded_paths = {"0x10 `call 0x20`"};
  truth.iterations = 3;
  truth.ends_by_excluded_path = 0;
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_THAT(loop.excluded_paths, ElementsAre("0x10 `call 0x20`"));
  EXPECT_EQ(Team(loop, "LS").shadows + 3, static_cast<uint32_t>(log_.shadows)) << "three looks";
}

// Long and short instances in turn, which behave differently.
FakeTruth VaryingTrips() {
  FakeTruth truth;
  truth.trips = {5000, 50};
  truth.live_factor = 0.005;  // as the short ones: the warm protocol stays
  truth.saturation = {{"LS", 0.95}, {"FP", 0.2}};
  truth.short_saturation = {{"LS", 0.3}, {"FP", 0.98}};
  return truth;
}

TEST_F(LoopExperimentTest, WhereTripCountsVaryMoreInstancesAreSeenAndJudgedApart) {
  const LoopMeasurement loop = Run(VaryingTrips(), {"LS", "FP", "DL1"});
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_EQ(Team(loop, "LS").shadows, 9u) << "as many as repetitions were asked for";
  ASSERT_EQ(loop.trip_classes.size(), 2u);
  const TripClass& shorter = loop.trip_classes[0];
  EXPECT_EQ(shorter.longest, 50u);
  EXPECT_EQ(loop.trip_classes[1].shortest, 5000u);
  EXPECT_EQ(shorter.instances + loop.trip_classes[1].instances, 9u);
  LoopMeasurement alone;
  alone.figures = shorter.figures;
  EXPECT_NEAR(Saturation(alone, "LS"), 0.3, 0.01);
  EXPECT_GT(Team(alone, "LS").edits.accesses, 0) << "what DL1 pins is known in each class";
  alone.figures = loop.trip_classes[1].figures;
  EXPECT_NEAR(Saturation(alone, "LS"), 0.95, 0.02);
  EXPECT_NEAR(Saturation(alone, "FP"), 0.2, 0.01);
}

TEST_F(LoopExperimentTest, WhereTheyDoNotVaryNoMoreInstancesAreSeen) {
  FakeTruth truth = VaryingTrips();
  truth.trips = {5000, 2501};  // not twice as long
  truth.short_saturation = truth.saturation;
  const LoopMeasurement loop = Run(truth, {"LS", "FP", "DL1"});
  EXPECT_LT(Team(loop, "LS").shadows, 9u);
  EXPECT_THAT(loop.trip_classes, ElementsAre());
}

TEST_F(LoopExperimentTest, InstancesThatTheBudgetDoesNotBuyLeaveTheLoopMeasured) {
  FakeInjector injector(VaryingTrips(), &log_);
  LoopToInject loop;
  loop.variants = {*ParseVariantName("LS")};
  LoopSetup setup;
  setup.asked = {"LS"};
  setup.repetitions = 9;
  setup.shadow_ns = 500'000'000;
  setup.ticks_per_ns = 2;
  LoopExperiment experiment(setup, (*injector.Install({loop}))[0]);
  const auto step = [&] {
    experiment.Step(
        injector,
        {.credit_ns = 1'000'000'000, .timeout_ns = 1000, .prediction = injector.PredictShadow()});
  };
  for (int i = 0; i < 4; ++i) step();  // entry count, live, look, one shadow
  LoopExperiment early = experiment;
  early.Close("too dear");
  EXPECT_EQ(early.Measurement(1).state, MeasureState::kOpen)
      << "LS itself is not known well enough";
  for (int i = 0; i < 3; ++i) step();
  ASSERT_GE(Team(experiment.Measurement(1), "LS").valid_runs, 9u);
  ASSERT_LT(Team(experiment.Measurement(1), "LS").shadows, 9u);
  EXPECT_EQ(experiment.stage(), Stage::kMeasure);
  experiment.Close("too dear");
  EXPECT_EQ(experiment.Measurement(1).state, MeasureState::kMeasured);
  EXPECT_EQ(experiment.Measurement(1).reason, "");
}

TEST_F(LoopExperimentTest, ColdProtocolWhereLiveIsSlower) {
  FakeTruth truth;
  truth.live_factor = 1.5;
  truth.saturation = {{"LS", 0.9}};
  const LoopMeasurement loop = Run(truth, {"LS", "FP", "DL1"});
  EXPECT_EQ(loop.protocol, "cold");
  EXPECT_NEAR(loop.fidelity.value, 1, 0.02);
  EXPECT_NEAR(Saturation(loop, "LS"), 0.9, 0.02);
  EXPECT_GT(Runs(Evict::kAll), 10);
}

TEST_F(LoopExperimentTest, TheLevelWhoseEvictionIsNearestToLiveIsKept) {
  FakeTruth truth;
  truth.live_factor = 1.5;
  truth.cold_factor = 3;
  truth.first_factor = 1.2;
  truth.second_factor = 1.45;
  const LoopMeasurement second = Run(truth, {"LS"});
  EXPECT_EQ(second.protocol, "L2 evicted");
  EXPECT_NEAR(second.fidelity.value, 1.45 / 1.5, 0.02);
  EXPECT_EQ(Runs(Evict::kAll), 2) << "one look at each level";
  truth.first_factor = 1.42;  // no farther than a few percent, and far cheaper
  EXPECT_EQ(Run(truth, {"LS"}).protocol, "L1 evicted");
}

TEST_F(LoopExperimentTest, WhatNoEvictionBringsAboutIsMeasuredWhereTheProgramComesByItself) {
  FakeTruth truth;
  truth.live_factor = 3;
  truth.cold_factor = 6;
  truth.natural_factor = 2.9;
  truth.saturation = {{"LS", 0.9}};
  const LoopMeasurement loop = Run(truth, {"LS", "FP", "DL1"});
  EXPECT_EQ(loop.protocol, kNaturalProtocol);
  EXPECT_NEAR(loop.fidelity.value, 2.9 / 3, 0.02);
  EXPECT_EQ(loop.fidelity.caches, CachesBefore::kUnknown);
  EXPECT_NEAR(Saturation(loop, "LS"), 0.9, 0.02);
  EXPECT_GT(log_.natural_runs, 30);
}

TEST_F(LoopExperimentTest, NaturalArrivalsThatAreNoNearerToLiveAreComparedOnce) {
  FakeTruth truth;
  truth.live_factor = 3;
  truth.cold_factor = 2.5;
  truth.natural_factor = 2.45;
  const LoopMeasurement loop = Run(truth, {"LS", "FP", "DL1"});
  EXPECT_EQ(loop.protocol, "cold");
  EXPECT_EQ(log_.natural_runs, 8);
}

TEST_F(LoopExperimentTest, AProgramThatDoesNotComeByAnyMoreIsRepeatedAgain) {
  FakeTruth truth;
  truth.live_factor = 3;
  truth.cold_factor = 5;
  truth.natural_factor = 2.9;
  truth.arrives_until = 5;
  const LoopMeasurement loop = Run(truth, {"LS", "FP", "DL1"});
  EXPECT_NE(loop.protocol, kNaturalProtocol);
  EXPECT_EQ(loop.state, MeasureState::kMeasured);
}

TEST_F(LoopExperimentTest, ShortInstancesEmptyAllCachesOnlyIfWarmOnesAreNothingLikeLive) {
  FakeTruth truth;
  truth.live_factor = 1.5;
  truth.ref_cycles = 40'000;  // 20 us, live 30: 4 ms of evicting before each is too much
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.protocol, "warm");
  EXPECT_EQ(Runs(Evict::kAll), 0);
  EXPECT_EQ(Runs(Evict::kSecond), 2);
  truth.ref_cycles = 10'000;
  EXPECT_EQ(Run(truth, {"LS"}).protocol, "warm");
  EXPECT_EQ(Runs(Evict::kSecond), 2) << "1 ms of evicting is too much, too";
  EXPECT_EQ(Runs(Evict::kFirst), 4);
  truth.live_factor = 2.1;
  truth.ref_cycles = 30'000;
  EXPECT_EQ(Run(truth, {"LS"}).protocol, "cold");
}

TEST_F(LoopExperimentTest, LevelsThatARunEmptiesByItselfAreNotTried) {
  FakeTruth truth;
  truth.live_factor = 1.5;
  evict_bytes_ = {0, 1024, 4096, 1 << 20};  // a run of a thread goes over 2 KB
  EXPECT_EQ(Run(truth, {"LS"}).protocol, "cold");
  EXPECT_EQ(Runs(Evict::kFirst), 0);
  EXPECT_EQ(Runs(Evict::kSecond), 2);
  evict_bytes_ = {0, 1024, 1024, 1024};
  const int all = Runs(Evict::kAll);
  EXPECT_EQ(Run(truth, {"LS"}).protocol, "warm") << "nothing is left to be tried";
  EXPECT_EQ(Runs(Evict::kAll), all);
}

TEST_F(LoopExperimentTest, WarmWhereLiveIsFaster) {
  FakeTruth truth;
  truth.live_factor = 0.5;
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.protocol, "warm");
  EXPECT_EQ(Runs(Evict::kFirst) + Runs(Evict::kSecond) + Runs(Evict::kAll), 0);
  EXPECT_NEAR(loop.fidelity.value, 2, 0.04);
}

TEST_F(LoopExperimentTest, WarmStaysWhereColdIsFartherFromLive) {
  FakeTruth truth;
  truth.live_factor = 1.2;
  truth.cold_factor = 3;
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.protocol, "warm");
  EXPECT_GT(Runs(Evict::kAll), 0);
  EXPECT_NEAR(loop.fidelity.value, 1 / 1.2, 0.02);
  EXPECT_NEAR(Team(loop, "REF").cycles, truth.ref_cycles, 0.02 * truth.ref_cycles);
}

TEST_F(LoopExperimentTest, WarmRunsDoNotCountAmongColdOnes) {
  FakeTruth truth;
  truth.live_factor = 1.5;
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.protocol, "cold");
  // One shadow was the first look, one was warm, one compared the protocols.
  EXPECT_EQ(Team(loop, "LS").shadows + 3, static_cast<uint32_t>(log_.shadows));
}

TEST_F(LoopExperimentTest, WhatIsUpdatedInPlaceIsBroughtBackWhileProtocolsAreCompared) {
  FakeTruth truth;
  truth.live_factor = 1.5;
  truth.in_situ = truth.memory_carried = true;
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.protocol, "cold") << loop.reason;
}

TEST_F(LoopExperimentTest, FidelityComparesOneThreadWithOneThread) {
  FakeTruth truth;
  truth.team = 3;
  truth.last_thread_factor = 2;
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_NEAR(loop.fidelity.value, 1, 0.02);
  EXPECT_NEAR(Team(loop, "REF").cycles, 2 * truth.ref_cycles, 0.04 * truth.ref_cycles);
}

TEST_F(LoopExperimentTest, FidelityHasTheSpreadOfLiveInstances) {
  FakeTruth truth;
  const LoopMeasurement calm = Run(truth, {"LS"});
  truth.live_spread = 0.4;
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_NEAR(loop.fidelity.value, 1, 0.02);
  EXPECT_GT(loop.fidelity.high - loop.fidelity.low, calm.fidelity.high - calm.fidelity.low + 0.05);
  EXPECT_EQ(loop.fidelity.live_instances, 15u) << "of the team, not of each thread";
  EXPECT_EQ(loop.fidelity.shadows, Team(loop, "REF").shadows);
  EXPECT_GE(loop.fidelity.runs, Team(loop, "REF").valid_runs);
  EXPECT_EQ(loop.fidelity.caches, CachesBefore::kWarm);
}

TEST_F(LoopExperimentTest, TheBaseBeforeTheFirstVariantCountsTheWarmUpBeforeItDoesNot) {
  const LoopMeasurement loop = Run({}, {"LS"});
  const VariantFigures ls = Team(loop, "LS");
  EXPECT_EQ(Team(loop, "REF").valid_runs, ls.valid_runs + ls.shadows);
  for (const VariantFigures& figures : loop.figures) EXPECT_NE(figures.variant, "COUNT");
}

TEST_F(LoopExperimentTest, TheProbeIsNoPartOfTheLoop) {
  FakeTruth truth;
  truth.probe_cycles = 50'000;
  truth.saturation = {{"LS", 0.2}};
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_NEAR(Saturation(loop, "LS"), 0.2, 0.01);
  EXPECT_NEAR(Team(loop, "REF").cycles, truth.ref_cycles, 0.02 * truth.ref_cycles);
}

TEST_F(LoopExperimentTest, VariantsStandAgainstTheirOwnBase) {
  FakeTruth truth;
  truth.bases = {{"FP", "REF_CTL"}};
  truth.saturation = {{"LS", 0.9}, {"REF_CTL", 2}, {"FP", 0.4}};
  const LoopMeasurement loop = Run(truth, {"LS", "FP"});
  EXPECT_EQ(Team(loop, "FP").base, "REF_CTL");
  EXPECT_NEAR(Saturation(loop, "FP"), 0.2, 0.01);
  EXPECT_NEAR(Saturation(loop, "LS"), 0.9, 0.02);
}

TEST_F(LoopExperimentTest, FiguresSayWhatWasChanged) {
  const LoopMeasurement loop = Run({}, {"LS", "FP"});
  EXPECT_EQ(Team(loop, "LS").edits.changed, 3);  // the fake injector's fourth copy
  EXPECT_EQ(Team(loop, "LS").edits.pinned, 4);
  EXPECT_EQ(Team(loop, "LS").edits.accesses, 5);
  EXPECT_EQ(Team(loop, "FP").edits.changed, 4);
}

// Of what prices a fix; what a verdict compares is run all the same.
TEST_F(LoopExperimentTest, AVariantThatIsTheLoopItselfIsNotRun) {
  FakeTruth truth;
  truth.saturation = {{"LS", 1}, {"FP", 0.4}};
  truth.idle = {"LS", "NO_DIV", "NO_STORE"};
  const LoopMeasurement loop =
      Run(truth, {"LS", "FP", "NO_STORE", "S2L", "NO_DIV", "NO_RED", "NO_DIV+NO_RED"});
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_GT(Team(loop, "LS").valid_runs, 0u);
  EXPECT_GT(Team(loop, "S2L").valid_runs, 0u);
  EXPECT_GT(Team(loop, "NO_RED").valid_runs, 0u);
  for (const VariantFigures& figures : loop.figures) {
    EXPECT_NE(figures.variant, "NO_STORE");
    EXPECT_EQ(figures.variant.find("NO_DIV"), std::string::npos) << "nor combined";
  }
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

TEST_F(LoopExperimentTest, InvalidRunsSayWhatHappenedToThem) {
  FakeTruth truth;
  truth.faulting = "FP";
  const auto reason = [&](RunOutcome outcome) {
    truth.outcome = outcome;
    for (const Refusal& refusal : Run(truth, {"LS", "FP"}).refusals) {
      if (refusal.variant == "FP") return refusal.reason;
    }
    return std::string("none");
  };
  EXPECT_EQ(reason(RunOutcome::kFault), "the variant faulted in the shadow");
  EXPECT_EQ(reason(RunOutcome::kTimeout), "the variant did not end in time");
  EXPECT_EQ(reason(RunOutcome::kNotRun), "the shadow ended before this run");
}

TEST_F(LoopExperimentTest, ClosedBeforeAnybodyLookedIsOpenNotNeverEntered) {
  FakeTruth truth;
  truth.team = 0;
  FakeInjector injector(truth, &log_);
  LoopToInject loop;
  loop.variants = {*ParseVariantName("LS")};
  const auto installed = injector.Install({loop});
  LoopSetup setup;
  setup.asked = {"LS"};
  LoopExperiment unwatched(setup, (*installed)[0]);
  unwatched.Close("the profile ended first");
  EXPECT_EQ(unwatched.Measurement(1).state, MeasureState::kOpen);
  EXPECT_EQ(unwatched.Measurement(1).reason, "the profile ended first");
  EXPECT_THAT(unwatched.Measurement(1).open, ElementsAre("LS"));
  LoopExperiment watched(setup, (*installed)[0]);
  watched.Step(injector, {});
  watched.Close("the profile ended first");
  EXPECT_EQ(watched.Measurement(1).state, MeasureState::kNeverEntered);
  watched.Close("and again");
  EXPECT_THAT(watched.Measurement(1).reason, HasSubstr("no thread entered"));
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
  truth.shadow_status = absl::OutOfRangeError("the team did not meet");
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.state, MeasureState::kOpen);
  EXPECT_THAT(loop.open, ElementsAre("LS"));
}

TEST_F(LoopExperimentTest, ThreadsThatNeverMeetAreMeasuredOneAtATime) {
  FakeTruth truth;
  truth.on_shadow = [](const ShadowRequest& request, const ShadowAnswer&) {
    return request.team == 1 ? absl::OkStatus() : absl::OutOfRangeError("they did not meet");
  };
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.state, MeasureState::kMeasured);
  EXPECT_EQ(loop.team, 2);
  EXPECT_EQ(loop.cost.failed_arms, 2u);
  EXPECT_THAT(loop.protocol, HasSubstr("one thread at a time"));
}

TEST_F(LoopExperimentTest, ATeamThatHasMetIsNotTakenForLoneThreads) {
  FakeTruth truth;
  truth.on_shadow = [met = 0](const ShadowRequest& request, const ShadowAnswer&) mutable {
    return request.team == 1 || ++met <= 2 ? absl::OkStatus()
                                           : absl::OutOfRangeError("they did not meet");
  };
  const LoopMeasurement loop = Run(truth, {"LS", "FP", "DL1"});
  EXPECT_EQ(loop.state, MeasureState::kOpen);
  EXPECT_THAT(loop.protocol, Not(HasSubstr("one thread at a time")));
}

TEST_F(LoopExperimentTest, LittleCreditBuysFewVariantsAtATimeButAllInTheEnd) {
  FakeTruth truth;
  truth.ref_cycles = 2e6;  // 1 ms
  const LoopMeasurement loop = Run(truth, {"LS", "FP", "DL1"}, 6'000'000);
  EXPECT_EQ(loop.state, MeasureState::kMeasured);
  EXPECT_THAT(loop.open, ElementsAre());
  EXPECT_LT(log_.pause_ns / log_.shadows, 9'000'000);
}

TEST_F(LoopExperimentTest, ALabThatHeldNobodyIsNotAskedForEver) {
  FakeTruth truth;
  truth.pause_factor = 0;
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.state, MeasureState::kOpen);
  EXPECT_THAT(loop.reason, HasSubstr("without having held its team"));
  EXPECT_EQ(log_.shadows, 4);
}

}  // namespace
}  // namespace perfd::agent
