#include "agent/pipeline/cost/session_costs.h"

#include <gtest/gtest.h>

namespace perfd::agent {
namespace {

class SessionCostsTest : public testing::Test {
 protected:
  SessionCostsTest() {
    costs_.SetPrices({.sample_ns = 2000, .switch_ns = 500, .shared_cores = false});
    costs_.Begin(0, used_);
    Inspect({});
    costs_.EndSpan(0);
    costs_.EndWindow();
  }
  // The agent has used 1,000 more, 400 of it in the session's thread.
  void Inspect(const CpuUse& ranks, int living = 1, double on_share = 1) {
    used_.session_ns += 400;
    used_.agent_ns += 1000;
    now_ns_ += 100;
    costs_.Record({ranks, used_, living, on_share, now_ns_, now_ns_, {}});
  }
  int64_t Lost() { return static_cast<int64_t>(costs_.EndWindow().lost_to_agent_ns); }

  SessionCosts costs_;
  UsedCpu used_{500, 7000};
  int64_t now_ns_ = 0;
};

TEST_F(SessionCostsTest, TheAgentCountsAsFarAsRanksWaitedForACpu) {
  costs_.RecordSample();
  Inspect({.cpu_ns = 90, .switches = 3, .wait_ns = 100});
  const CostSpan span = costs_.EndSpan(1000);
  EXPECT_EQ(span.governor.wall_ns, 1000);
  EXPECT_EQ(span.governor.job_cpu_ns, 90u);
  EXPECT_EQ(span.governor.samples, 1u);
  EXPECT_EQ(span.governor.switches, 3u);
  EXPECT_EQ(span.governor.lost_to_agent_ns, 40u) << "of the thread as of the whole agent";
  EXPECT_EQ(span.other_ns, 60);
  EXPECT_EQ(Lost(), 100);
}

TEST_F(SessionCostsTest, WhatTheGovernorCannotSteerIsOther) {
  costs_.RecordFixed(300);
  Inspect({.wait_ns = 1'000'000});
  const CostSpan span = costs_.EndSpan(1000);
  EXPECT_EQ(span.governor.lost_to_agent_ns, 100u);
  EXPECT_EQ(span.other_ns, 900);
}

TEST_F(SessionCostsTest, LooksWithThreadsThatNobodySawAgainCountInFull) {
  costs_.RecordStart(0);
  costs_.RecordStart(0);
  Inspect({.appeared = 1});
  EXPECT_EQ(Lost(), 1000) << "one of them is gone already";
  costs_.RecordStart(0);
  Inspect({.ended = 1});
  EXPECT_EQ(Lost(), 1000);
  costs_.RecordStart(0);
  Inspect({.appeared = 1});
  EXPECT_EQ(Lost(), 0) << "the next look tells of all";
  Inspect({.unknown = true});
  EXPECT_EQ(Lost(), 1000);
  Inspect({});
  EXPECT_EQ(Lost(), 0);
}

TEST_F(SessionCostsTest, StartsOfThreadsCostWhatNoFrequencySteers) {
  costs_.SetPrices({.start_ns = 5000, .shared_cores = false});
  costs_.RecordStart(0);
  costs_.RecordStart(0);
  Inspect({.appeared = 2}, 1, /*on_share=*/0.1);
  const CostSpan span = costs_.EndSpan(1000);
  EXPECT_EQ(span.starts_ns, 10'000) << "events that rest are told of them as well";
  EXPECT_EQ(span.other_ns, 0) << "ranks run side by side";
  costs_.RecordStart(0);
  costs_.RecordStart(1);
  Inspect({.appeared = 2}, 2);
  EXPECT_EQ(costs_.EndSpan(2000).starts_ns, 5000) << "in the mean of the ranks";
  EXPECT_EQ(costs_.EndWindow().following_ns, 20'000) << "in the account of all ranks";
  costs_.RecordStart(0);
  Inspect({.appeared = 1});
  costs_.EndSpan(3000);
  EXPECT_EQ(span.governor.lost_to_agent_ns, 0u);
  EXPECT_EQ(costs_.EndWindow().following_ns, 5000);
  Inspect({});
  EXPECT_EQ(costs_.EndWindow().following_ns, 0);
}

TEST_F(SessionCostsTest, WhenRecordsAreMissingTwoLooksCountInFull) {
  costs_.RecordUnseen();
  for (const int64_t lost : {1000, 1000, 0}) {
    Inspect({});
    EXPECT_EQ(Lost(), lost);
  }
}

TEST_F(SessionCostsTest, TheBeginCountsInFull) {
  SessionCosts costs;
  costs.SetPrices({.shared_cores = false});
  costs.Begin(0, {0, 0});
  costs.Record({{}, {0, 700}, 1, 1, 100, 100, {}});
  EXPECT_EQ(costs.EndWindow().lost_to_agent_ns, 700u);
}

TEST_F(SessionCostsTest, SpansAndWindowsAddUpToTheSame) {
  int64_t spans_ns = 0;
  for (const uint64_t wait_ns : {0u, 300u, 5000u}) {
    Inspect({.wait_ns = wait_ns});
    const CostSpan span = costs_.EndSpan(now_ns_);
    spans_ns += static_cast<int64_t>(span.governor.lost_to_agent_ns) + span.other_ns;
  }
  EXPECT_EQ(spans_ns, 1300);
  EXPECT_EQ(Lost(), 1300) << "what ranks waited in one look is nothing that they lost in another";
}

TEST_F(SessionCostsTest, AWindowHasWhatRanksUsedAndLived) {
  Inspect({.cpu_ns = 10, .switches = 4}, 2, 0.5);
  Inspect({.cpu_ns = 20}, 0);
  const WindowCosts window = costs_.EndWindow();
  EXPECT_EQ(window.job_cpu_ns, 30u);
  EXPECT_EQ(window.following_ns, 1000);
  EXPECT_EQ(window.rank_wall_ns, 400u) << "while none lives as many as before";
  EXPECT_EQ(costs_.EndWindow().job_cpu_ns, 0u);
}

}  // namespace
}  // namespace perfd::agent
