#include "daemon/http/byte_budget.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

namespace perfd::daemon {
namespace {

TEST(ByteBudgetTest, HoldsUpToItsLimitAndGetsItBack) {
  ByteBudget budget(100);
  ByteBudget::Body first = budget.Hold(std::string(60, 'a'));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(*first, std::string(60, 'a'));
  EXPECT_FALSE(budget.Fits(41));
  EXPECT_EQ(budget.Hold(std::string(41, 'b')), nullptr);
  const ByteBudget::Body second = budget.Hold(std::string(40, 'b'));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(budget.held(), 100u);
  EXPECT_EQ(budget.Hold("c"), nullptr);
  const ByteBudget::Body copy = first;
  first.reset();
  EXPECT_EQ(budget.held(), 100u) << "a copy is still there";
}

TEST(ByteBudgetTest, WhatIsLargerThanAllIsHeldAlone) {
  ByteBudget budget(100);
  ByteBudget::Body large = budget.Hold(std::string(1000, 'a'));
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(budget.Hold("b"), nullptr);
  EXPECT_FALSE(budget.Fits(1));
  large.reset();
  EXPECT_TRUE(budget.Fits(1000));
  EXPECT_NE(budget.Hold("b"), nullptr);
}

TEST(ByteBudgetTest, BodiesMayOutliveIt) {
  ByteBudget::Body body;
  {
    std::optional<ByteBudget> budget(10);
    body = budget->Hold("text");
  }
  EXPECT_EQ(*body, "text");
}

TEST(ByteBudgetTest, ManyAtOnce) {
  ByteBudget budget(1000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 1000; ++n) {
        const ByteBudget::Body body = budget.Hold(std::string(400, 'x'));
        EXPECT_LE(budget.held(), 1000u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.held(), 0u);
}

}  // namespace
}  // namespace perfd::daemon
