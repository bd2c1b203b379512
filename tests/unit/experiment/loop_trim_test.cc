// When a loop's shadows leave memory out, and when they stop doing so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "agent/experiment/steps/loop_experiment.h"
#include "tests/unit/experiment/fake_injector.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kMs = 1'000'000;

class LoopTrimTest : public ::testing::Test {
 protected:
  // A rank whose fork costs 200 ms, 2 ms without what the loop does not touch. An instance of 1 ms may touch too much for a guess.
  LoopTrimTest() {
    truth_.ref_cycles = 2'000'000;
    truth_.fork_ns = 200 * kMs;
    truth_.trimmed_ns = 2 * kMs;
    truth_.saturation = {{"LS", 0.6}};
  }

  LoopMeasurement Run(int64_t credit_ns) {
    FakeInjector injector(truth_, &log_);
    LoopToInject loop;
    loop.variants = {*ParseVariantName("LS")};
    auto installed = injector.Install({loop});
    LoopSetup setup;
    setup.asked = {"LS"};
    setup.repetitions = 9;
    setup.shadow_ns = 500 * kMs;
    setup.ticks_per_ns = 2;
    LoopExperiment experiment(setup, (*installed)[0]);
    for (int i = 0; i < 50 && experiment.stage() != Stage::kDone; ++i) {
      StepRoom room;
      room.credit_ns = credit_ns;
      room.timeout_ns = 1000;
      room.prediction = injector.PredictShadow();
      if (const auto footprint = experiment.footprint())
        room.trimmed = injector.PredictTrimmed(*footprint, 2);
      experiment.Step(injector, room);
    }
    return experiment.Measurement(1);
  }

  int64_t Trimmed() const {
    return std::count_if(log_.footprints.begin(), log_.footprints.end(),
                         [](const auto& footprint) { return footprint.has_value(); });
  }

  FakeTruth truth_;
  FakeLog log_;
};

TEST_F(LoopTrimTest, AlsoWhereAWholeForkCouldBePaid) {
  EXPECT_EQ(Run(1000 * kMs).state, MeasureState::kMeasured);
  EXPECT_EQ(Trimmed(), static_cast<int64_t>(log_.footprints.size()) - 1);
}

TEST_F(LoopTrimTest, AfterAFirstWholeShadowThatTellsWhatTheLoopTouches) {
  const LoopMeasurement loop = Run(100 * kMs);
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  ASSERT_GT(log_.footprints.size(), 1u);
  EXPECT_FALSE(log_.footprints[0].has_value());
  EXPECT_EQ(Trimmed(), static_cast<int64_t>(log_.footprints.size()) - 1);
  const Footprint& footprint = *log_.footprints[1];
  EXPECT_FALSE(footprint.whole_areas);
  // What the fake injector's trace says.
  ASSERT_EQ(footprint.ranges.size(), 2u);
  EXPECT_EQ(footprint.ranges[0].start, 0x10000u);
  EXPECT_EQ(footprint.ranges[0].end, 0x10808u);
  EXPECT_EQ(footprint.ranges[1].start, 0x90000u);
  EXPECT_EQ(footprint.ranges[1].end, 0x90808u);
}

TEST_F(LoopTrimTest, AMissKeepsWholeMappings) {
  truth_.misses = 1;
  const LoopMeasurement loop = Run(100 * kMs);
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  ASSERT_GT(log_.footprints.size(), 2u);
  EXPECT_FALSE(log_.footprints[1]->whole_areas);
  EXPECT_TRUE(log_.footprints[2]->whole_areas);
}

TEST_F(LoopTrimTest, TwoMissesEndIt) {
  truth_.misses = 100;
  Run(100 * kMs);
  EXPECT_EQ(Trimmed(), 2);
  EXPECT_GT(log_.footprints.size(), 3u);
}

TEST_F(LoopTrimTest, ThreeRefusalsOfTheLabEndItToo) {
  truth_.trim_status = absl::AbortedError("2 of its 3 threads");
  const LoopMeasurement loop = Run(100 * kMs);
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_EQ(Trimmed(), 3);
}

TEST_F(LoopTrimTest, TheFirstShadowOfAShortInstanceKeepsWhatItCanReach) {
  truth_.ref_cycles = 200'000;  // 0.1 ms
  const LoopMeasurement loop = Run(100 * kMs);
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  EXPECT_EQ(Trimmed(), static_cast<int64_t>(log_.footprints.size()));
  const Footprint& guess = *log_.footprints[0];
  EXPECT_THAT(guess.ranges, IsEmpty());
  EXPECT_EQ(guess.around, 1'600'000u);
  EXPECT_EQ(log_.footprints[1]->around, 0u);
  EXPECT_EQ(log_.footprints[1]->ranges.size(), 2u);
}

TEST_F(LoopTrimTest, AGuessThatMissesIsFollowedByAWholeShadow) {
  truth_.ref_cycles = 200'000;
  truth_.misses = 1;
  const LoopMeasurement loop = Run(100 * kMs);
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  ASSERT_GT(log_.footprints.size(), 2u);
  EXPECT_TRUE(log_.footprints[0].has_value());
  EXPECT_FALSE(log_.footprints[1].has_value());
  EXPECT_FALSE(log_.footprints[2]->whole_areas) << "it was no miss of what was traced";
}

TEST_F(LoopTrimTest, TwoGuessesThatCannotBeKeptAreFollowedByAWholeShadow) {
  truth_.ref_cycles = 200'000;
  truth_.trim_status = absl::AbortedError("this instance may touch so much");
  const LoopMeasurement loop = Run(100 * kMs);
  EXPECT_EQ(loop.state, MeasureState::kMeasured) << loop.reason;
  ASSERT_GT(log_.footprints.size(), 2u);
  EXPECT_TRUE(log_.footprints[0].has_value());
  EXPECT_TRUE(log_.footprints[1].has_value())
      << "another instance, or another moment, may be better";
  EXPECT_FALSE(log_.footprints[2].has_value());
}

TEST_F(LoopTrimTest, AGuessMakesALoopMeasurableWhoseRankIsTooLarge) {
  truth_.fork_ns = 351 * kMs;
  truth_.ref_cycles = 200'000;
  EXPECT_EQ(Run(10'000 * kMs).state, MeasureState::kMeasured);
  truth_.misses = 1;
  EXPECT_EQ(Run(10'000 * kMs).state, MeasureState::kRefused);
}

TEST_F(LoopTrimTest, AForkLongerThanTheLongestPauseIsNotMade) {
  truth_.fork_ns = 351 * kMs;  // 0.7 of 500 ms are 350
  const LoopMeasurement loop = Run(10'000 * kMs);
  EXPECT_EQ(loop.state, MeasureState::kRefused);
  EXPECT_THAT(loop.reason, HasSubstr("budget.shadow of 501 ms"));
  EXPECT_THAT(loop.reason, HasSubstr("only after a first shadow"));
  EXPECT_THAT(log_.footprints, IsEmpty());
  truth_.fork_ns = 350 * kMs;
  EXPECT_EQ(Run(10'000 * kMs).state, MeasureState::kMeasured);
}

}  // namespace
}  // namespace perfd::agent
