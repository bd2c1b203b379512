// The first shadow of a loop: what it teaches about the cost of the next ones.
#include "tests/unit/experiment/loop_fixture.h"

namespace perfd::agent {
namespace {

constexpr int64_t kMs = 1'000'000;

// A loop of 1 ms that has been looked at, and what the look cost.
struct Looked {
  explicit Looked(FakeTruth truth) : injector(Slow(std::move(truth)), &log) {
    LoopToInject loop;
    loop.variants.push_back(*ParseVariantName("LS"));
    LoopSetup setup;
    setup.asked = {"LS"};
    setup.shadow_ns = 500 * kMs;
    setup.ticks_per_ns = 2;
    experiment.emplace(setup, (*injector.Install({loop}))[0]);
    for (int i = 0; i < 20 && experiment->stage() < Stage::kMeasure; ++i) {
      cost = experiment->Step(
          injector,
          {.credit_ns = 1000 * kMs, .timeout_ns = 1000, .prediction = injector.PredictShadow()});
    }
    EXPECT_EQ(experiment->stage(), Stage::kMeasure);
  }
  static FakeTruth Slow(FakeTruth truth) {
    truth.ref_cycles = 2e6;
    return truth;
  }
  int64_t NextCost() { return experiment->LeastCost(injector.PredictShadow()); }

  FakeLog log;
  FakeInjector injector;
  std::optional<LoopExperiment> experiment;
  StepCost cost;
};

using LoopProbeTest = LoopTest;

TEST_F(LoopProbeTest, TheFirstRunCopiesPagesTheNextShadowIsNotPricedByIt) {
  FakeTruth truth;
  truth.first_run_factor = 20;
  Looked plain{FakeTruth{}}, copying{truth};
  EXPECT_GT(copying.cost.pause_ns, plain.cost.pause_ns + 15 * kMs);
  EXPECT_GT(plain.NextCost(), 5 * kMs);
  EXPECT_LT(copying.NextCost(), plain.NextCost() + kMs);
}

// One shadow that tells all against one that tells the least.
TEST_F(LoopProbeTest, ARoundIsPricedByItsRunsAndFitsAShadow) {
  Looked loop{FakeTruth{}};
  const int64_t run_ns = loop.experiment->RoundNs();
  const ShadowPrediction prediction = loop.injector.PredictShadow();
  // Two warm-ups, LS between two of REF, COUNT and a counted LS, which take longer.
  EXPECT_EQ(loop.experiment->RoundCost(prediction) - loop.NextCost(), (2 + 3 + 1 + 2 - 6) * run_ns);
  FakeTruth slow;
  slow.live_factor = 60;  // of 1 ms: eight runs would be longer than 0.7 of 500 ms
  Looked long_run{slow};
  EXPECT_LE(long_run.experiment->RoundCost(prediction), 500 * kMs);
}

TEST_F(LoopProbeTest, ItsPredictionHasTheCopiesThatItFound) {
  FakeTruth truth;
  truth.copy_ns_per_mb = 1000 * kMs;
  Looked plain{FakeTruth{}}, copying{truth};
  // At least 2 KB are written.
  EXPECT_GT(copying.cost.predicted_ns, plain.cost.predicted_ns + 1000 * kMs / 512 - kMs / 10);
}

// Before the trace no more than an instance has time for; then what it saw.
TEST_F(LoopProbeTest, AShadowIsAskedForWithWhatItsRunsMayWrite) {
  FakeTruth truth;
  truth.ref_cycles = 2e6;  // 1 ms
  std::vector<uint64_t> written;
  truth.on_shadow = [&](const ShadowRequest& request, ShadowAnswer&) {
    written.push_back(request.written.most_bytes);
    return absl::OkStatus();
  };
  Run(truth, {"LS"});
  ASSERT_GE(written.size(), 2u);
  EXPECT_GE(written[0], 2u * 4'000'000) << "two threads, 4 bytes a ns";
  EXPECT_LT(written[0], 2u * 8'000'000);
  EXPECT_GE(written[1], 2048u);
  EXPECT_LT(written[1], 1u << 20);
}

TEST_F(LoopProbeTest, ATimeThatTheForkTookIsNoFaultOfTheLoop) {
  FakeTruth truth;
  int late = 2;
  truth.on_shadow = [&](const ShadowRequest&, ShadowAnswer& answer) {
    if (late-- <= 0) return absl::OkStatus();
    for (ShadowRun& run : answer.runs)
      LeaveOut(run, "not run: the shadow overdue, killed by the rank");
    return absl::OkStatus();
  };
  EXPECT_EQ(Run(truth, {"LS"}).state, MeasureState::kMeasured);
  late = 1000;
  const LoopMeasurement never = Run(truth, {"LS"});
  EXPECT_EQ(never.state, MeasureState::kOpen);
  EXPECT_NE(never.reason.find("before the loop ran"), std::string::npos) << never.reason;
}

TEST_F(LoopProbeTest, WhatWasCancelledIsOpenAndSaysWhy) {
  FakeTruth truth;
  truth.install_status = absl::CancelledError("ended");
  FakeInjector injector(truth, &log_);
  LoopExperiment experiment({}, (*injector.Install({LoopToInject()}))[0]);
  EXPECT_EQ(experiment.stage(), Stage::kDone);
  experiment.Reopen();
  EXPECT_EQ(experiment.stage(), Stage::kDone) << "it has no copies";
  experiment.Close("the disable file exists");
  EXPECT_EQ(experiment.Measurement(1).state, MeasureState::kOpen);
  EXPECT_EQ(experiment.Measurement(1).reason, "the disable file exists");
}

TEST_F(LoopProbeTest, ALookThatRanOutOfTimeSaysSo) {
  FakeTruth truth;
  truth.faulting = "COUNT";
  truth.outcome = RunOutcome::kNotRun;
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.state, MeasureState::kRefused);
  EXPECT_EQ(loop.reason,
            "a shadow has no time for COUNT behind the loop itself; a larger budget.shadow has");
}

TEST_F(LoopProbeTest, ManyWrittenRangesMatterOnlyWhereTheyAreRestored) {
  FakeTruth truth;
  truth.team = 20;
  truth.stores = 55;
  EXPECT_EQ(Run(truth, {"LS"}).state, MeasureState::kMeasured);
  truth.in_situ = true;
  const LoopMeasurement loop = Run(truth, {"LS"});
  EXPECT_EQ(loop.state, MeasureState::kRefused);
  EXPECT_THAT(loop.reason, ::testing::HasSubstr("writes 1081 ranges of memory"));
}

}  // namespace
}  // namespace perfd::agent
