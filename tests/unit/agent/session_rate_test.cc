// When a session lowers its rate: soon, if sampling itself is dear; not for what the agent needs to begin.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/agent/session_fixture.h"

namespace perfd::agent {
namespace {

class SessionRateTest : public SessionTest {
 protected:
  SessionRateTest() {
    tools_.cpu_ns = [] { return 0; };  // the test's own CPU time is none of the session's
  }
  // A drain, ten of them in a second: so many samples of a rank that runs all the time.
  void SampleAtEachDrain(int samples) {
    script_.on_drain = [this, samples](SampleSink& sink, int drain) {
      AddRank(kPid, 150 + static_cast<uint64_t>(10 * drain));
      for (int i = 0; i < samples; ++i) sink.OnSample(At(0x400144));
    };
    request_.spec.budget.overhead_ratio = 0.02;
  }
  int FirstLowered() const { return script_.lowered.empty() ? 999 : script_.lowered.front(); }
};

TEST_F(SessionRateTest, SamplesThatAreDearAreFewerAfterATenthOfASecond) {
  sample_cost_ns_ = 1e6;
  SampleAtEachDrain(20);  // 20 % of the time
  Run();
  EXPECT_LE(FirstLowered(), 3);
  ASSERT_GE(script_.lowered.size(), 2u);
  EXPECT_LE(script_.lowered[1], 5) << "a quarter was not enough";
}

TEST_F(SessionRateTest, WhatIsCheapStaysAtTheRateAskedFor) {
  sample_cost_ns_ = 1e3;
  SampleAtEachDrain(20);
  Run();
  EXPECT_TRUE(script_.lowered.empty());
}

TEST_F(SessionRateTest, WhatTheAgentNeedsToBeginIsNoReason) {
  sample_cost_ns_ = 1e3;
  SampleAtEachDrain(20);
  // 90 ms of its thread in the first half second, then nothing.
  const int64_t begin_ns = clock_.now_ns;
  tools_.cpu_ns = [this, begin_ns] {
    return static_cast<uint64_t>(std::min<int64_t>((clock_.now_ns - begin_ns) / 5, 90'000'000));
  };
  Run();
  EXPECT_GE(FirstLowered(), 10) << "the look after a second may count it";
}

// So many threads, one after the other, in each tenth of a second.
class SessionStartsTest : public SessionRateTest {
 protected:
  void StartAtEachDrain(int threads) {
    script_.on_drain = [this, threads](SampleSink& sink, int drain) {
      AddRank(kPid, 150 + static_cast<uint64_t>(10 * drain));
      for (int i = 0; i < threads; ++i)
        sink.OnTask({.kind = TaskEvent::Kind::kThreadStarted, .pid = kPid, .tid = 5000 + i});
      sink.OnSample(At(0x400144));
      ++drains_;
    };
    start_cost_ns_ = 10'000;
    request_.spec.budget.overhead_ratio = 0.02;
    request_.spec.until_known = false;
    request_.spec.duration_ns = request_.remaining_ns = 10 * kNsPerSecond;
  }
  uint64_t SamplingNs() const {
    uint64_t sum = 0;
    for (const Window& window : output_.windows) sum += window.overhead.kernel_sampling_ns;
    return sum;
  }
  int drains_ = 0;
};

TEST_F(SessionStartsTest, ARankThatStartsThreadsAllTheTimeIsLeftAlone) {
  StartAtEachDrain(400);
  Run();
  EXPECT_EQ(script_.removed, std::vector<int32_t>{kPid});
  EXPECT_GE(drains_, 6);
  EXPECT_LE(drains_, 8) << "nobody else is sampled: the profile is over";
  EXPECT_THAT(output_.AllNotices(),
              testing::AllOf(testing::HasSubstr("rank 0 (pid 4711) starts about 4"),
                             testing::HasSubstr("% of its time"),
                             testing::HasSubstr("the budget is 2.0 %")));
  EXPECT_EQ(output_.Total().kept, static_cast<uint64_t>(drains_)) << "what was sampled counts";
  EXPECT_NEAR(static_cast<double>(SamplingNs()), drains_ * 4e6, 4.1e6);
  EXPECT_EQ(output_.update.back().phase, NodeProgress::Phase::kFinished);
}

TEST_F(SessionStartsTest, ItIsSampledOnWhereTheBudgetAllowsIt) {
  StartAtEachDrain(150);  // 1.5 %
  Run();
  EXPECT_GE(drains_, 90);
  EXPECT_EQ(output_.AllNotices(), "");
}

TEST(StartLimit, MostOfWhatWasStartedIsGone) {
  const StartLimit limit{.start_ns = 10'000, .budget_ratio = 0.02};
  const RankStarts starts{.count = 4000, .threads = 2, .followed_ns = kNsPerSecond};
  EXPECT_DOUBLE_EQ(StartCostRatio(limit, starts), 0.04);
  EXPECT_TRUE(CostsTooMuch(limit, starts));
  EXPECT_FALSE(CostsTooMuch(limit, {4000, 1000, kNsPerSecond})) << "they stay";
  EXPECT_FALSE(CostsTooMuch(limit, {4000, 2, 2 * kNsPerSecond})) << "2 %";
  EXPECT_FALSE(CostsTooMuch(limit, {2000, 2, 400 * kNsPerMs})) << "not yet";
  EXPECT_FALSE(CostsTooMuch({0, 0.02}, starts)) << "what a start costs is not known";
  EXPECT_TRUE(CostsTooMuch({10'000, 0.001}, {500, 2, kNsPerSecond}));
  EXPECT_FALSE(CostsTooMuch({10'000, 0.001}, {499, 2, kNsPerSecond})) << "too few to say";
  EXPECT_EQ(StartCostRatio(limit, {4000, 2, 0}), 0);
}

}  // namespace
}  // namespace perfd::agent
