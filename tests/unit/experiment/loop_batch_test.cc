// Short instances, run in a row. Times are of one instance, whatever ran.
#include "tests/unit/experiment/loop_fixture.h"

namespace perfd::agent {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

class LoopBatchTest : public LoopTest {
 protected:
  LoopBatchTest() {
    truth_.ref_cycles = 1000;  // half a microsecond
    truth_.iterations = 40;
    truth_.saturation = {{"LS", 0.9}, {"FP", 0.3}, {"DL1", 0.5}};
    truth_.batches = absl::OkStatus();
  }

  LoopMeasurement Run() { return LoopTest::Run(truth_, {"LS", "FP", "DL1"}); }

  FakeTruth truth_;
};

auto InARow(const std::string& why) {
  return Contains(
      AllOf(Field(&Refusal::variant, "in a row"), Field(&Refusal::reason, HasSubstr(why))));
}

TEST_F(LoopBatchTest, ShortInstancesAreRunInARowAndToldOneByOne) {
  truth_.probe_cycles = 400;
  truth_.around_factor = 1.1;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_GT(loop.instances, 100u);
  EXPECT_NEAR(Team(loop, "REF").cycles, 1100, 30) << "the probe is paid once a chain";
  EXPECT_NEAR(loop.fidelity.value, 1.1, 0.03);
  EXPECT_NEAR(Team(loop, "FP").saturation.value, 0.3, 0.02);
  EXPECT_EQ(loop.trips.decile[5], 40) << "passes of one instance";
  EXPECT_EQ(loop.protocol, "warm");
}

// One by one they cannot overlap with their neighbours: what is compared with live is what runs as live does.
TEST_F(LoopBatchTest, BatchesAreComparedWithBatchesInTheRank) {
  truth_.live_factor = 3;
  truth_.around_factor = 1.1;
  truth_.live_batch_factor = 1.05;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_NEAR(loop.fidelity.value, 1.1 / 1.05, 0.03);
  EXPECT_GT(loop.fidelity.live_instances, 1000u);
}

// The loop around may pass the loop by, or come to it several times in a turn.
TEST_F(LoopBatchTest, TurnsOfBatchesInTheRankAreToldByInstance) {
  for (const double instances_in_a_turn : {0.5, 2.0}) {
    truth_.live_factor = 3;
    truth_.live_batch_factor = instances_in_a_turn;
    truth_.on_shadow = [&](const ShadowRequest& request, ShadowAnswer& answer) {
      for (ShadowRun& run : answer.runs) {
        if (run.ok && request.runs[static_cast<size_t>(run.run)].variant == 1)
          run.instances =
              static_cast<uint64_t>(instances_in_a_turn * static_cast<double>(run.instances));
        if (run.ok)
          run.cycles = static_cast<uint64_t>(instances_in_a_turn * static_cast<double>(run.cycles));
      }
      return absl::OkStatus();
    };
    const LoopMeasurement loop = Run();
    EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
    EXPECT_NEAR(loop.fidelity.value, 1, 0.03) << instances_in_a_turn;
  }
}

TEST_F(LoopBatchTest, WhereBatchesAreGivenUpInstancesAreComparedOneByOne) {
  truth_.live_factor = 2;
  truth_.live_batch_factor = 1.2;
  truth_.most_instances = 2;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.instances, 0u);
  EXPECT_NEAR(loop.fidelity.value, 0.5, 0.02);
}

TEST_F(LoopBatchTest, LongInstancesAreNot) {
  truth_.ref_cycles = 10'000;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured);
  EXPECT_EQ(loop.instances, 0u);
  EXPECT_EQ(log_.longest_batch, 0u);
  EXPECT_TRUE(loop.refusals.empty());
}

TEST_F(LoopBatchTest, WithoutAChainItIsMeasuredAloneAndSaysWhy) {
  truth_.batches = absl::FailedPreconditionError("it calls in between");
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_EQ(loop.instances, 0u);
  EXPECT_THAT(loop.refusals, InARow("it calls in between"));
  EXPECT_NEAR(Team(loop, "FP").saturation.value, 0.3, 0.02);
}

TEST_F(LoopBatchTest, WhatLiesBetweenMustNotOutweighTheLoop) {
  truth_.around_factor = 4;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_EQ(loop.instances, 0u);
  EXPECT_THAT(loop.refusals, InARow("4.0 times as long"));
  EXPECT_NEAR(Team(loop, "REF").cycles, 1000, 20) << "no run of a chain among those alone";
}

TEST_F(LoopBatchTest, AChainThatIsLeftAtOnceSaysNothing) {
  truth_.most_instances = 2;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.instances, 0u);
  EXPECT_THAT(loop.refusals, InARow("left after 2 of them"));
  EXPECT_NEAR(Team(loop, "REF").cycles, 1000, 20);
}

TEST_F(LoopBatchTest, ChainsThatAreLeftAtOnceNowAndThenAreMadeAgain) {
  int shadows = 0;
  truth_.on_shadow = [&](const ShadowRequest& request, ShadowAnswer& answer) {
    if (++shadows % 3 != 0 || request.runs[0].instances == 0) return absl::OkStatus();
    for (ShadowRun& run : answer.runs) run.instances = 1, run.cycles = 30;
    return absl::OkStatus();
  };
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_GT(loop.instances, 100u);
  EXPECT_NEAR(Team(loop, "REF").cycles, 1000, 20);
}

TEST_F(LoopBatchTest, MorePassesThanCanBeTracedMakeItShorter) {
  truth_.iterations = 300;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_GT(log_.longest_batch, loop.instances);
  EXPECT_GE(loop.instances, 10u);
  EXPECT_LE(loop.instances * 300, 20'000u);
}

TEST_F(LoopBatchTest, AVariantWithoutAChainIsRefusedWithItsReason) {
  truth_.not_batched = {"DL1"};
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  for (const VariantFigures& figures : loop.figures) EXPECT_NE(figures.variant, "DL1");
  EXPECT_THAT(loop.refusals, Contains(AllOf(Field(&Refusal::variant, "DL1"),
                                            Field(&Refusal::reason, HasSubstr("prepares each")))));
  EXPECT_NEAR(Team(loop, "LS").saturation.value, 0.9, 0.02);
}

TEST_F(LoopBatchTest, AChainThatFaultsIsGivenUpNotTheLoop) {
  truth_.on_shadow = [](const ShadowRequest& request, ShadowAnswer& answer) {
    if (request.runs[0].instances == 0) return absl::OkStatus();
    for (ShadowRun& run : answer.runs)
      run.ok = false, run.failure = "writes shared memory: SIGSEGV";
    return absl::OkStatus();
  };
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_THAT(loop.refusals, InARow("TRACE failed: writes shared memory"));
  EXPECT_NEAR(Team(loop, "FP").saturation.value, 0.3, 0.02);
}

TEST_F(LoopBatchTest, AChainWithoutTimeForItsTraceIsGivenUpNotTheLoop) {
  truth_.on_shadow = [](const ShadowRequest& request, ShadowAnswer& answer) {
    if (request.runs[0].instances == 0) return absl::OkStatus();
    for (ShadowRun& run : answer.runs) LeaveOut(run);
    return absl::OkStatus();
  };
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_THAT(loop.refusals, InARow("no time for TRACE"));
}

// Half of the bursts see a phase in which every pass is an entry.
TEST_F(LoopBatchTest, PhasesThatCallInEveryPassDoNotCountAsLive) {
  truth_.excluded_paths = {"0x10 `call 0x20`"};
  truth_.ends_by_excluded_path = 0;
  int bursts = 0;
  truth_.on_call = [&](const std::string& name) {
    if (name == "live") ++bursts;
  };
  truth_.live_of_call = [&] { return bursts % 2 == 0 ? 1.0 : 0.05; };
  const LoopMeasurement loop = Run();
  EXPECT_NEAR(loop.fidelity.value, 1, 0.05);
}

TEST_F(LoopBatchTest, ShadowsWithoutTheLoopItselfDoNotEndSuccession) {
  truth_.live_factor = 3;
  truth_.turns = true;
  truth_.successive_factor = 3.1;
  truth_.saturation["NO_RED"] = 0.9;
  truth_.saturation["NO_DIV"] = 0.8;
  const LoopMeasurement loop = LoopTest::Run(truth_, {"LS", "FP", "DL1", "NO_RED", "NO_DIV"});
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_EQ(loop.protocol, kSuccessiveProtocol);
}

// A matrix that no cache holds: its rows, repeated, are in the caches, and take a third of their time.
TEST_F(LoopBatchTest, InstancesThatNothingTouchedBeforeAreNearerToLive) {
  truth_.live_factor = 3;
  truth_.turns = true;
  truth_.successive_factor = 3.1;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_EQ(loop.protocol, kSuccessiveProtocol);
  EXPECT_NEAR(loop.fidelity.value, 1.03, 0.05);
  EXPECT_NEAR(Team(loop, "FP").saturation.value, 0.3, 0.02);
  EXPECT_NEAR(Team(loop, "DL1").saturation.value, 0.5, 0.02);
  EXPECT_GT(log_.successive_runs, 50);
}

// Live instances are timed one by one, and cannot overlap as those of a batch do.
TEST_F(LoopBatchTest, LiveInstancesAreComparedAsIfTheyOverlapped) {
  truth_.ref_cycles = 500;
  truth_.live_factor = 6;
  truth_.live_spread = 0.2;
  truth_.turns = true;
  truth_.successive_factor = 3;
  truth_.alone_factor = 2;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.protocol, kSuccessiveProtocol);
  EXPECT_NEAR(loop.fidelity.value, 1, 0.05);
  EXPECT_LE(loop.fidelity.low, loop.fidelity.value);
  EXPECT_GE(loop.fidelity.high, loop.fidelity.value);
}

// Without them, repeated ones would have been as far from live.
TEST_F(LoopBatchTest, OverlapAloneMayMakeRepeatedInstancesLikeLive) {
  truth_.live_factor = 2;
  truth_.turns = true;
  truth_.successive_factor = 2;
  truth_.alone_factor = 2;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.protocol, "warm");
  EXPECT_NEAR(loop.fidelity.value, 1, 0.05);
}

TEST_F(LoopBatchTest, RepeatedInstancesStayWhereTheyAreLikeLive) {
  truth_.turns = true;
  truth_.successive_factor = 2;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.protocol, "warm");
  EXPECT_EQ(log_.successive_runs, 0) << "it was like live from the start";
}

TEST_F(LoopBatchTest, RepeatedInstancesStayWhereOthersAreNoNearer) {
  truth_.live_factor = 1.3;
  truth_.turns = true;
  truth_.successive_factor = 2;
  const LoopMeasurement loop = Run();
  EXPECT_NE(loop.protocol, kSuccessiveProtocol);
  EXPECT_GT(log_.successive_runs, 0) << "they were compared";
}

TEST_F(LoopBatchTest, WhatIsUpdatedInPlaceIsNotGoneOnFrom) {
  truth_.live_factor = 3;
  truth_.turns = true;
  truth_.in_situ = true;
  truth_.successive_factor = 3;
  const LoopMeasurement loop = Run();
  EXPECT_NE(loop.protocol, kSuccessiveProtocol);
  EXPECT_EQ(log_.successive_runs, 0);
}

TEST_F(LoopBatchTest, RunsThatAreAlwaysCutShortGiveWayToRepeatedOnes) {
  truth_.live_factor = 3;
  truth_.turns = true;
  truth_.successive_factor = 3.1;
  truth_.cut_short_from = 4;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_NE(loop.protocol, kSuccessiveProtocol);
  EXPECT_NEAR(Team(loop, "FP").saturation.value, 0.3, 0.02);
}

}  // namespace
}  // namespace perfd::agent
