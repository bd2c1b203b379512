#include "core/analysis/budget_governor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace perfd {
namespace {

// One second of one rank at a budget of 2 %; `cost_ns` is all agent time.
GovernorSpan Span(uint64_t cost_ns, double current_hz = 100, double requested_hz = 199) {
  GovernorSpan span;
  span.wall_ns = 1'000'000'000;
  span.job_cpu_ns = 1'000'000'000;
  span.lost_to_agent_ns = cost_ns;
  span.budget_ratio = 0.02;
  span.current_hz = current_hz;
  span.requested_hz = requested_hz;
  return span;
}

TEST(BudgetGovernor, AddsUpEveryCost) {
  GovernorSpan span = Span(1'000'000);
  span.samples = 1000;
  span.sample_cost_ns = 2000;
  EXPECT_DOUBLE_EQ(NextFrequency(span).cost_ratio, 0.003);
}

// Threads of one rank wait for each other, ranks are interrupted side by side, the agent takes from everybody.
TEST(BudgetGovernor, OnlyTheCostsOfOneRankAddUp) {
  GovernorSpan span = Span(1'000'000);
  span.samples = 1000;
  span.sample_cost_ns = 2000;
  span.ranks = 4;
  EXPECT_DOUBLE_EQ(NextFrequency(span).cost_ratio, 0.0015);
  span.ranks = 0;  // the last one ended in this span
  EXPECT_DOUBLE_EQ(NextFrequency(span).cost_ratio, 0.003);
}

TEST(BudgetGovernor, SwitchesCostWhileTheEventsAreOn) {
  GovernorSpan span = Span(0, 199, 199);
  span.switches = 10'000;
  span.switch_cost_ns = 2000;
  EXPECT_DOUBLE_EQ(NextFrequency(span).cost_ratio, 0.02);
  EXPECT_TRUE(NextFrequency(span).lowered);
  span.on_share = 0.25;
  EXPECT_DOUBLE_EQ(NextFrequency(span).cost_ratio, 0.005);
  EXPECT_FALSE(NextFrequency(span).lowered);
  span.on_share = 7;
  EXPECT_DOUBLE_EQ(KernelSamplingNs(span), 20'000'000);
}

TEST(BudgetGovernor, EightyPercentOfTheBudgetIsTheAlarm) {
  EXPECT_FALSE(NextFrequency(Span(16'000'000)).lowered);
  const GovernorDecision decision = NextFrequency(Span(16'100'000));
  EXPECT_TRUE(decision.lowered);
  EXPECT_DOUBLE_EQ(decision.frequency_hz, 90);  // the weakest cut
  EXPECT_NE(decision.reason, "");
}

TEST(BudgetGovernor, CutsInProportionButNotBelowAQuarter) {
  EXPECT_DOUBLE_EQ(NextFrequency(Span(32'000'000)).frequency_hz, 50);
  EXPECT_DOUBLE_EQ(NextFrequency(Span(500'000'000)).frequency_hz, 25);
}

TEST(BudgetGovernor, RecoversSlowlyBelowHalfTheBudget) {
  EXPECT_NEAR(NextFrequency(Span(9'000'000)).frequency_hz, 110, 1e-9);
  EXPECT_DOUBLE_EQ(NextFrequency(Span(10'000'000)).frequency_hz, 100);
  EXPECT_EQ(NextFrequency(Span(10'000'000)).reason, "");
}

TEST(BudgetGovernor, NeverAboveRequested) {
  EXPECT_DOUBLE_EQ(NextFrequency(Span(0, 190)).frequency_hz, 199);
  EXPECT_DOUBLE_EQ(NextFrequency(Span(0, 199)).frequency_hz, 199);
  EXPECT_EQ(NextFrequency(Span(0, 199)).reason, "");
  EXPECT_DOUBLE_EQ(NextFrequency(Span(12'000'000, 5000)).frequency_hz, 199);
}

TEST(BudgetGovernor, TheFloorIsOneHertz) {
  const GovernorDecision decision = NextFrequency(Span(500'000'000, 1.5));
  EXPECT_DOUBLE_EQ(decision.frequency_hz, kGovernorFloorHz);
  const GovernorDecision at_floor = NextFrequency(Span(500'000'000, 1));
  EXPECT_DOUBLE_EQ(at_floor.frequency_hz, 1);
  EXPECT_FALSE(at_floor.lowered);
  EXPECT_NE(at_floor.reason, "") << "over budget at the floor must be said";
}

TEST(BudgetGovernor, IdleJobChangesNothing) {
  GovernorSpan span = Span(1'000'000);
  span.job_cpu_ns = 0;
  EXPECT_DOUBLE_EQ(NextFrequency(span).frequency_hz, 100);
  EXPECT_DOUBLE_EQ(NextFrequency(span).cost_ratio, 0);
}

TEST(BudgetGovernor, NonsenseInputStaysInRange) {
  GovernorSpan span = Span(1, std::nan(""));
  span.sample_cost_ns = -HUGE_VAL;
  span.budget_ratio = std::nan("");
  const GovernorDecision decision = NextFrequency(span);
  EXPECT_GE(decision.frequency_hz, kGovernorFloorHz);
  EXPECT_LE(decision.frequency_hz, 199);
}

// Closed loop: each sample costs 10 us, so 2 % of one core is 2000 Hz and the alarm 1600 Hz.
TEST(BudgetGovernor, SettlesBelowTheAlarm) {
  double hz = 10'000;
  for (int i = 0; i < 100; ++i) {
    GovernorSpan span = Span(0, hz, 10'000);
    span.samples = static_cast<uint64_t>(hz);
    span.sample_cost_ns = 10'000;
    hz = NextFrequency(span).frequency_hz;
    if (i > 5) {
      EXPECT_LE(hz, 1600 * 1.001) << i;
      EXPECT_GE(hz, 800) << i;
    }
  }
}

}  // namespace
}  // namespace perfd
