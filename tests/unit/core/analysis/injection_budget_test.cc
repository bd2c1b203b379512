#include "core/analysis/injection_budget.h"

#include <gtest/gtest.h>

namespace perfd {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(InjectionBudgetTest, EarnsItsShareOfElapsedTimeAndALittleAhead) {
  const InjectionBudget budget(0.02, 100 * kSecond, 160 * kSecond);
  EXPECT_EQ(budget.TotalNs(), kSecond * 12 / 10);
  EXPECT_EQ(budget.CreditNs(100 * kSecond), kSecond / 5);        // 10 s ahead
  EXPECT_EQ(budget.CreditNs(130 * kSecond), kSecond * 8 / 10);   // 30 s + 10 s
  EXPECT_EQ(budget.CreditNs(155 * kSecond), kSecond * 12 / 10);  // no more than the whole
  EXPECT_EQ(budget.CreditNs(999 * kSecond), kSecond * 12 / 10);
}

TEST(InjectionBudgetTest, SaysHowLongToWaitAndWhenItIsNoUse) {
  InjectionBudget budget(0.02, 0, 60 * kSecond);
  EXPECT_EQ(budget.WaitNs(kSecond / 5, 0), 0);
  EXPECT_EQ(budget.WaitNs(kSecond / 5 + kSecond / 50, 0), kSecond);
  EXPECT_EQ(budget.WaitNs(2 * kSecond, 0), -1);
  budget.Spend(kSecond);
  EXPECT_LT(budget.CreditNs(0), 0);
  EXPECT_EQ(budget.WaitNs(kSecond / 5, 0), 50 * kSecond);
  EXPECT_EQ(budget.WaitNs(kSecond / 5 + 1, 0), -1);
}

TEST(InjectionBudgetTest, WaitingAsLongAsToldIsEnough) {
  InjectionBudget budget(0.013, 0, 100 * kSecond);
  budget.Spend(77'777'777);
  for (int64_t cost = 1; cost < 900'000'000; cost = cost * 3 + 7) {
    const int64_t wait = budget.WaitNs(cost, 3 * kSecond);
    ASSERT_GE(wait, 0) << cost;
    EXPECT_TRUE(budget.Allows(cost - 1, 3 * kSecond + wait)) << cost;
  }
}

TEST(InjectionBudgetTest, WhatGoesOnAllTheTimeIsLeftItsPartOfWhatIsSpentAhead) {
  InjectionBudget budget(0.02, 0, 60 * kSecond);
  budget.Charge(kSecond / 100, kSecond);  // 1 % of the first second
  // 11 s earn 220 ms; 10 ms are charged, and 100 ms will be until then.
  EXPECT_EQ(budget.CreditNs(kSecond), kSecond * 11 / 100);
  budget.Spend(kSecond * 11 / 100);
  budget.Charge(kSecond / 10, 11 * kSecond);
  EXPECT_EQ(budget.CreditNs(11 * kSecond), kSecond * 10 / 100)
      << "2 % less 1 % of ten seconds more";
  EXPECT_EQ(budget.spent_ns(), kSecond * 22 / 100);
}

TEST(InjectionBudgetTest, WhatIsOnlyExpectedPutsAStepOffAndRulesNoneOut) {
  InjectionBudget budget(0.02, 0, 60 * kSecond);
  budget.Charge(kSecond / 100, kSecond);  // at this rate half of the whole
  const int64_t cost = kSecond * 9 / 10;
  int64_t now = kSecond;
  while (budget.WaitNs(cost, now) > 0) now += budget.WaitNs(cost, now);
  EXPECT_EQ(budget.WaitNs(cost, now), 0);
  EXPECT_GT(now, 40 * kSecond);
  EXPECT_EQ(budget.WaitNs(kSecond * 12 / 10, kSecond), -1) << "10 ms of the whole are gone";
}

TEST(InjectionBudgetTest, ADearBeginIsNotTakenForWhatGoesOn) {
  InjectionBudget budget(0.02, 0, 60 * kSecond);
  budget.Charge(kSecond / 4, kSecond);  // 25 % of the first second
  for (int s = 2; s <= 20; ++s) budget.Charge(kSecond / 500, s * kSecond);  // 0.2 %
  EXPECT_EQ(budget.spent_ns(), kSecond * 288 / 1000);
  // 30 s have earned 600 ms; of the ten ahead some 1 % of the begin's rate may still be seen.
  EXPECT_LT(budget.CreditNs(20 * kSecond), kSecond * (600 - 288 - 20) / 1000);
  EXPECT_GT(budget.CreditNs(20 * kSecond), kSecond * (600 - 288 - 100) / 1000);
  for (int s = 21; s <= 50; ++s) budget.Charge(kSecond / 500, s * kSecond);
  EXPECT_NEAR(static_cast<double>(budget.CreditNs(50 * kSecond)), kSecond * (1.2 - 0.348 - 0.02),
              kSecond / 500);
}

TEST(InjectionBudgetTest, ZeroRatioAllowsNothing) {
  const InjectionBudget budget(0, 0, 60 * kSecond);
  EXPECT_FALSE(budget.Allows(1, 30 * kSecond));
  EXPECT_EQ(budget.WaitNs(1, 30 * kSecond), -1);
}

TEST(InjectionBudgetTest, NeverMoreThanHalfOfTheTime) {
  EXPECT_EQ(InjectionBudget(0.9, 0, 60 * kSecond).TotalNs(), 30 * kSecond);
  EXPECT_EQ(InjectionBudget(-1, 0, 60 * kSecond).TotalNs(), 0);
}

TEST(InjectionBudgetTest, BeforeTheBeginNothingHasElapsed) {
  const InjectionBudget budget(0.02, 100 * kSecond, 160 * kSecond);
  EXPECT_EQ(budget.CreditNs(0), budget.CreditNs(100 * kSecond));
}

TEST(InjectionBudgetTest, AFirstMomentIsNoRate) {
  InjectionBudget early(0.02, 0, 60 * kSecond);
  early.Charge(kSecond / 50, kSecond / 10);  // 20 ms in the first 100
  for (int tenth = 2; tenth <= 40; ++tenth) early.Charge(kSecond / 10'000, tenth * kSecond / 10);
  InjectionBudget even(0.02, 0, 60 * kSecond);
  for (int tenth = 1; tenth <= 40; ++tenth)
    even.Charge((kSecond / 50 + 39 * kSecond / 10'000) / 40, tenth * kSecond / 10);
  EXPECT_NEAR(static_cast<double>(early.CreditNs(4 * kSecond)),
              static_cast<double>(even.CreditNs(4 * kSecond)), kSecond / 1000)
      << "as if it had come evenly";
}

TEST(InjectionBudgetTest, MostOfTheBudgetMayBeExpectedToBeCharged) {
  InjectionBudget budget(0.02, 0, 60 * kSecond);
  for (int s = 1; s <= 20; ++s) budget.Charge(kSecond * 12 / 1000, s * kSecond);  // 1.2 %
  // 30 s earn 600 ms; 240 are gone, ten more seconds will take 120.
  EXPECT_NEAR(static_cast<double>(budget.CreditNs(20 * kSecond)), kSecond * 240 / 1000,
              kSecond / 1000);
}

// 2 % of 60 s are 1.2 s; half of it is charged all the time.
TEST(InjectionBudgetTest, WhatIsChargedPutsOffWhatMayBeExpected) {
  InjectionBudget budget(0.02, 0, 60 * kSecond);
  for (int second = 1; second <= 10; ++second) budget.Charge(kSecond / 100, second * kSecond);
  const int64_t now = 10 * kSecond, credit = budget.CreditNs(now);
  EXPECT_EQ(budget.LikelyWaitNs(credit, now), 0);
  const int64_t more = credit + kSecond / 10;
  EXPECT_NEAR(static_cast<double>(budget.LikelyWaitNs(more, now)), 10e9, 1e8) << "0.1 s at 1 %";
  EXPECT_LT(budget.WaitNs(more, now), 6 * kSecond) << "if nothing were charged any more";
  // 1.1 s are left, 0.5 s of which will be charged.
  EXPECT_GT(budget.LikelyWaitNs(kSecond * 59 / 100, now), 0);
  EXPECT_EQ(budget.LikelyWaitNs(kSecond * 61 / 100, now), -1);
  EXPECT_GT(budget.WaitNs(kSecond * 61 / 100, now), 0);
}

TEST(CostCorrectionTest, NothingIsLearntFromNothing) {
  CostCorrection correction;
  correction.Learn(0, 5);
  correction.Learn(100, -1);
  EXPECT_EQ(correction.Corrected(100), 100);
}

TEST(CostCorrectionTest, CheapIsBoundedToo) {
  CostCorrection correction;
  for (int i = 0; i < 100; ++i) correction.Learn(1000, 0);
  EXPECT_NEAR(static_cast<double>(correction.Corrected(1000)), 100, 1);
}

TEST(CostCorrectionTest, LearnsDearAtOnceAndCheapSlowly) {
  CostCorrection correction;
  correction.Learn(100, 300);
  EXPECT_EQ(correction.Corrected(100), 300);
  correction.Learn(100, 100);
  EXPECT_EQ(correction.Corrected(100), 200);
  correction.Learn(100, 100'000);
  EXPECT_EQ(correction.Corrected(100), 1000);  // bounded
  correction.Learn(0, 5);                      // no model, nothing learnt
  EXPECT_EQ(correction.Corrected(100), 1000);
}

TEST(CostCorrectionTest, StepsCountForWhatTheyCost) {
  CostCorrection correction;
  correction.Learn(1000, 1000);
  correction.Learn(50, 500);  // ten times, of a twentieth of what steps cost
  EXPECT_NEAR(static_cast<double>(correction.Corrected(1000)), 1450, 1);
  CostCorrection small_first;
  small_first.Learn(50, 500);
  EXPECT_EQ(small_first.Corrected(200), 2000);
  EXPECT_EQ(small_first.Corrected(1000), 1000 + 9 * 200);
  small_first.Learn(1000, 1000);
  EXPECT_EQ(small_first.Corrected(1000), 1000);
}

}  // namespace
}  // namespace perfd
