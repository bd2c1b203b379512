#include "agent/pipeline/cost/agent_share.h"

#include <gtest/gtest.h>

namespace perfd::agent {
namespace {

AgentSpan Span(uint64_t agent_cpu_ns, uint64_t rank_wait_ns, bool shared_cores = false) {
  return {.agent_cpu_ns = agent_cpu_ns,
          .rank_wait_ns = rank_wait_ns,
          .waits_known = true,
          .shared_cores = shared_cores};
}

TEST(AgentShare, WhoNeverWaitedForACpuLostNothing) {
  EXPECT_EQ(LostToAgentNs(Span(100, 0)), 0u);
  EXPECT_EQ(LostToAgentNs(Span(0, 50)), 0u);
}

TEST(AgentShare, NoMoreThanRanksWaitedAndNoMoreThanTheAgentRan) {
  EXPECT_EQ(LostToAgentNs(Span(100, 30)), 30u);
  EXPECT_EQ(LostToAgentNs(Span(100, 3000)), 100u);
}

TEST(AgentShare, BesideItOnTheSameCoreHalfIsLost) {
  EXPECT_EQ(LostToAgentNs(Span(100, 0, true)), 50u);
  EXPECT_EQ(LostToAgentNs(Span(100, 30, true)), 80u);
  EXPECT_EQ(LostToAgentNs(Span(101, UINT64_MAX, true)), 101u);
}

TEST(AgentShare, WhatNobodyToldCountsInFull) {
  AgentSpan span = Span(100, 0);
  span.waits_known = false;
  EXPECT_EQ(LostToAgentNs(span), 100u);
}

}  // namespace
}  // namespace perfd::agent
