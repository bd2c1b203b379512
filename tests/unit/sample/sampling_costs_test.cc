#include "agent/sample/cost/sampling_costs.h"

#include <gtest/gtest.h>

namespace perfd::agent {
namespace {

class SamplingCostsTest : public ::testing::Test {
 protected:
  SamplingCosts costs_{[this](const ChosenEvent&) {
    ++measured_;
    return answer_;
  }};
  SamplingCost answer_{1500, 2.5, 4000};
  int measured_ = 0;
};

TEST_F(SamplingCostsTest, AnEventIsMeasuredOnce) {
  ChosenEvent event;
  EXPECT_EQ(*costs_.Of(event).sample_ns, 1500u);
  answer_ = {9, 9, 9};
  EXPECT_EQ(*costs_.Of(event).sample_ns, 1500u);
  EXPECT_EQ(*costs_.Of(event).switch_ns, 2.5);
  EXPECT_EQ(measured_, 1);
  event.attr.sample_freq = 400;
  EXPECT_EQ(*costs_.Of(event).sample_ns, 9u) << "another rate, another cost of a switch";
}

TEST_F(SamplingCostsTest, WhatFailedIsTriedAgain) {
  answer_.switch_ns = absl::DeadlineExceededError("busy");
  EXPECT_FALSE(costs_.Of({}).switch_ns.ok());
  answer_.switch_ns = 3;
  EXPECT_EQ(*costs_.Of({}).switch_ns, 3);
  EXPECT_EQ(measured_, 2);
}

}  // namespace
}  // namespace perfd::agent
