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

TEST_F(SessionStartsTest, ARankThatStartsThreadsAllTheTimeIsSampledNoLonger) {
  StartAtEachDrain(400);
  Run();
  EXPECT_EQ(script_.removed, std::vector<int32_t>{kPid});
  EXPECT_GE(drains_, 10);
  EXPECT_LE(drains_, 24) << "nobody else is sampled: the profile is over";
  EXPECT_THAT(output_.AllNotices(),
              testing::AllOf(testing::HasSubstr("rank 0 (pid 4711) starts about 4"),
                             testing::HasSubstr("about 4."),
                             testing::HasSubstr("more than the budget of 2.0 %")));
  EXPECT_EQ(output_.Total().kept, static_cast<uint64_t>(drains_)) << "what was sampled counts";
  EXPECT_NEAR(static_cast<double>(SamplingNs()), drains_ * 4e6, 4.1e6);
  EXPECT_EQ(output_.update.back().phase, NodeProgress::Phase::kFinished);
}

TEST_F(SessionStartsTest, OthersAreSampledOn) {
  StartAtEachDrain(400);
  constexpr int32_t kOther = kPid + 1;
  AddRank(kOther);
  request_.spec.target.pids = {kPid, kOther};
  const auto of_one = script_.on_drain;
  script_.on_drain = [this, of_one](SampleSink& sink, int drain) {
    of_one(sink, drain);
    AddRank(kOther, 150 + static_cast<uint64_t>(10 * drain));
    sink.OnSample(At(0x400144, kOther));
  };
  Run();
  EXPECT_EQ(script_.removed, std::vector<int32_t>{kPid})
      << "not one with its number, of another job";
  EXPECT_GE(drains_, 90);
}

TEST_F(SessionStartsTest, WhereTheGroupIsSampledOnNothingIsWon) {
  StartAtEachDrain(400);
  script_.removal_spares = false;
  Run();
  EXPECT_TRUE(script_.removed.empty());
  EXPECT_GE(drains_, 90);
  EXPECT_NEAR(static_cast<double>(SamplingNs()), drains_ * 4e6, 4.1e6) << "it counts";
}

TEST_F(SessionStartsTest, ItIsSampledOnWhereTheBudgetAllowsIt) {
  StartAtEachDrain(190);  // 1.9 %
  Run();
  EXPECT_GE(drains_, 90);
  EXPECT_EQ(output_.AllNotices(), "");
}

TEST_F(SessionStartsTest, WhatStartsCostIsNotThereForSamples) {
  for (const int threads : {0, 120}) {  // none, and 1.2 %
    StartAtEachDrain(threads);
    sample_cost_ns_ = 35'000;
    const auto starts = script_.on_drain;
    script_.on_drain = [starts](SampleSink& sink, int drain) {
      starts(sink, drain);
      for (int i = 1; i < 20; ++i)
        sink.OnSample(SessionTest::At(0x400144));  // 0.7 %, at the first look 1.4
    };
    script_.lowered.clear();
    Run();
    EXPECT_EQ(script_.lowered.empty(), threads == 0) << threads;
  }
}

class StartWatchTest : public testing::Test {
 protected:
  StartWatchTest() { watch_.Begin(kBegin); }
  // A look after so long, with so many starts since the last one.
  std::vector<BusyStarter> Inspect(int64_t ms, int starts, uint64_t threads = 2, int32_t pid = 7) {
    now_ns_ += ms * kNsPerMs;
    for (int i = 0; i < starts; ++i) watch_.Record(pid);
    return watch_.Probe({10'000, 0.02}, {{pid, threads}}, now_ns_);
  }
  static constexpr int64_t kBegin = 123'456'789;
  StartWatch watch_;
  int64_t now_ns_ = kBegin;
};

TEST_F(StartWatchTest, ARankThatCostsMoreThanTheBudgetForASecond) {
  EXPECT_TRUE(Inspect(100, 210).empty());
  EXPECT_TRUE(Inspect(899, 1888).empty());
  const auto busy = Inspect(100, 210);
  ASSERT_EQ(busy.size(), 1u);
  EXPECT_EQ(busy[0].pid, 7);
  EXPECT_NEAR(busy[0].starts_per_second, 2100, 2);
  EXPECT_NEAR(busy[0].cost_ratio, 0.021, 0.0001);
  EXPECT_EQ(busy[0].budget_ratio, 0.02);
  EXPECT_TRUE(Inspect(100, 210).empty()) << "told once; then a new row";
}

TEST_F(StartWatchTest, ALookWithinTheBudgetEndsTheRow) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(Inspect(900, 4000).empty()) << i;
    EXPECT_TRUE(Inspect(100, 200).empty()) << i << ": 2 %";
  }
  EXPECT_TRUE(Inspect(100, 3000).empty()) << "once, at the begin";
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Inspect(1000, 0).empty());
  EXPECT_TRUE(Inspect(1000, 9000).empty()) << "a burst";
  EXPECT_TRUE(Inspect(1000, 0).empty());
  EXPECT_TRUE(Inspect(1000, 2100).empty());
  EXPECT_EQ(Inspect(1000, 2100).size(), 1u) << "a calm begin allows no more later";
}

TEST_F(StartWatchTest, ThreadsThatStayAreNotMeant) {
  EXPECT_TRUE(Inspect(500, 4000, 1000).empty());
  EXPECT_TRUE(Inspect(500, 4000, 1000).empty());
  EXPECT_TRUE(Inspect(500, 4000, 999).empty());
  EXPECT_TRUE(Inspect(500, 4000, 0).empty()) << "nobody can say how many it has";
  EXPECT_TRUE(Inspect(500, 4000, 999).empty());
  EXPECT_EQ(Inspect(500, 4000, 999).size(), 1u);
}

TEST_F(StartWatchTest, ShortLooksCountWithTheNext) {
  EXPECT_TRUE(Inspect(1, 500).empty());
  EXPECT_TRUE(Inspect(999, 1500).empty()) << "2 %";
  EXPECT_TRUE(Inspect(1, 500).empty());
  EXPECT_TRUE(Inspect(599, 701).empty());
  EXPECT_EQ(Inspect(600, 1201).size(), 1u);
}

TEST_F(StartWatchTest, WithoutAPriceNobodyIsBusy) {
  for (int i = 0; i < 10'000; ++i) watch_.Record(7);
  EXPECT_TRUE(watch_.Probe({0, 0.02}, {}, kBegin + kNsPerSecond).empty());
}

}  // namespace
}  // namespace perfd::agent
