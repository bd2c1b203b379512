// Short instances, run in a row. Times are of one instance, whatever ran.
#include "tests/unit/experiment/loop_fixture.h"

namespace perfd {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

class LoopChainTest : public LoopTest {
 protected:
  LoopChainTest() {
    truth_.ref_cycles = 1000;  // half a microsecond
    truth_.iterations = 40;
    truth_.saturation = {{"LS", 0.9}, {"FP", 0.3}, {"DL1", 0.5}};
    truth_.chains = absl::OkStatus();
  }

  LoopMeasurement Run() { return LoopTest::Run(truth_, {"LS", "FP", "DL1"}); }

  FakeTruth truth_;
};

auto InARow(const std::string& why) {
  return Contains(
      AllOf(Field(&Refusal::variant, "in a row"), Field(&Refusal::reason, HasSubstr(why))));
}

TEST_F(LoopChainTest, ShortInstancesAreRunInARowAndToldOneByOne) {
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

TEST_F(LoopChainTest, LongInstancesAreNot) {
  truth_.ref_cycles = 10'000;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured);
  EXPECT_EQ(loop.instances, 0u);
  EXPECT_EQ(log_.longest_chain, 0u);
  EXPECT_TRUE(loop.refusals.empty());
}

TEST_F(LoopChainTest, WithoutAChainItIsMeasuredAloneAndSaysWhy) {
  truth_.chains = absl::FailedPreconditionError("it calls in between");
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_EQ(loop.instances, 0u);
  EXPECT_THAT(loop.refusals, InARow("it calls in between"));
  EXPECT_NEAR(Team(loop, "FP").saturation.value, 0.3, 0.02);
}

TEST_F(LoopChainTest, WhatLiesBetweenMustNotOutweighTheLoop) {
  truth_.around_factor = 4;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_EQ(loop.instances, 0u);
  EXPECT_THAT(loop.refusals, InARow("4.0 times as long"));
  EXPECT_NEAR(Team(loop, "REF").cycles, 1000, 20) << "no run of a chain among those alone";
}

TEST_F(LoopChainTest, AChainThatIsLeftAtOnceSaysNothing) {
  truth_.most_instances = 2;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.instances, 0u);
  EXPECT_THAT(loop.refusals, InARow("left after 2 of them"));
  EXPECT_NEAR(Team(loop, "REF").cycles, 1000, 20);
}

TEST_F(LoopChainTest, ChainsThatAreLeftAtOnceNowAndThenAreMadeAgain) {
  int shadows = 0;
  truth_.on_shadow = [&](const ShadowWish& wish, ShadowAnswer& answer) {
    if (++shadows % 3 != 0 || wish.runs[0].instances == 0) return absl::OkStatus();
    for (ShadowRun& run : answer.runs) run.instances = 1, run.cycles = 30;
    return absl::OkStatus();
  };
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_GT(loop.instances, 100u);
  EXPECT_NEAR(Team(loop, "REF").cycles, 1000, 20);
}

TEST_F(LoopChainTest, MorePassesThanCanBeTracedMakeItShorter) {
  truth_.iterations = 300;
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_GT(log_.longest_chain, loop.instances);
  EXPECT_GE(loop.instances, 10u);
  EXPECT_LE(loop.instances * 300, 20'000u);
}

TEST_F(LoopChainTest, AVariantWithoutAChainIsRefusedWithItsReason) {
  truth_.not_chained = {"DL1"};
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  for (const VariantFigures& figures : loop.figures) EXPECT_NE(figures.variant, "DL1");
  EXPECT_THAT(loop.refusals, Contains(AllOf(Field(&Refusal::variant, "DL1"),
                                            Field(&Refusal::reason, HasSubstr("prepares each")))));
  EXPECT_NEAR(Team(loop, "LS").saturation.value, 0.9, 0.02);
}

TEST_F(LoopChainTest, AChainThatFaultsIsGivenUpNotTheLoop) {
  truth_.on_shadow = [](const ShadowWish& wish, ShadowAnswer& answer) {
    if (wish.runs[0].instances == 0) return absl::OkStatus();
    for (ShadowRun& run : answer.runs)
      run.ok = false, run.failure = "writes shared memory: SIGSEGV";
    return absl::OkStatus();
  };
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_THAT(loop.refusals, InARow("TRACE failed: writes shared memory"));
  EXPECT_NEAR(Team(loop, "FP").saturation.value, 0.3, 0.02);
}

TEST_F(LoopChainTest, AChainWithoutTimeForItsTraceIsGivenUpNotTheLoop) {
  truth_.on_shadow = [](const ShadowWish& wish, ShadowAnswer& answer) {
    if (wish.runs[0].instances == 0) return absl::OkStatus();
    for (ShadowRun& run : answer.runs) run.ok = false, run.failure = "not run: time was up";
    return absl::OkStatus();
  };
  const LoopMeasurement loop = Run();
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_THAT(loop.refusals, InARow("no time for TRACE"));
}

// Half of the bursts see a phase in which every pass is an entry.
TEST_F(LoopChainTest, PhasesThatCallInEveryPassDoNotCountAsLive) {
  truth_.detours = {"0x10 `call 0x20`"};
  truth_.ends_by_detour = 0;
  int bursts = 0;
  truth_.on_call = [&](const std::string& name) {
    if (name == "live") ++bursts;
  };
  truth_.live_of_call = [&] { return bursts % 2 == 0 ? 1.0 : 0.05; };
  const LoopMeasurement loop = Run();
  EXPECT_NEAR(loop.fidelity.value, 1, 0.05);
}

}  // namespace
}  // namespace perfd
