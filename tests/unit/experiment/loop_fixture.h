// tests/unit/experiment/loop_fixture.h - one loop of an injector that answers from a known truth, measured until it is done.
#ifndef TESTS_UNIT_EXPERIMENT_LOOP_FIXTURE_H_
#define TESTS_UNIT_EXPERIMENT_LOOP_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "agent/experiment/steps/loop_experiment.h"
#include "tests/unit/experiment/fake_injector.h"

namespace perfd::agent {

class LoopTest : public ::testing::Test {
 protected:
  LoopMeasurement Run(const FakeTruth& truth, const std::vector<std::string>& asked,
                      int64_t credit_ns = 1'000'000'000) {
    FakeInjector injector(truth, &log_);
    LoopToInject loop;
    for (const std::string& name : asked) loop.variants.push_back(*ParseVariantName(name));
    auto installed = injector.Install({loop});
    LoopSetup setup;
    setup.asked = asked;
    setup.repetitions = 9;
    setup.shadow_ns = 500'000'000;
    setup.ticks_per_ns = 2;
    setup.evict_bytes = evict_bytes_;
    LoopExperiment experiment(setup, (*installed)[0]);
    for (int i = 0; i < 200 && experiment.stage() != Stage::kDone; ++i) {
      experiment.Step(
          injector,
          {.credit_ns = credit_ns, .timeout_ns = 1000, .prediction = injector.PredictShadow()});
    }
    EXPECT_EQ(experiment.stage(), Stage::kDone);
    return experiment.Measurement(7);
  }

  static VariantFigures Team(const LoopMeasurement& loop, const std::string& variant) {
    for (const VariantFigures& figures : loop.figures) {
      if (figures.variant == variant && figures.thread == kTeam) return figures;
    }
    ADD_FAILURE() << "no figures of " << variant;
    return {};
  }

  FakeLog log_;
  std::array<uint64_t, kEvictLevels> evict_bytes_{};
};

}  // namespace perfd::agent

#endif  // TESTS_UNIT_EXPERIMENT_LOOP_FIXTURE_H_
