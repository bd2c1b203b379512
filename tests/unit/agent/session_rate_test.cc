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

}  // namespace
}  // namespace perfd::agent
