#include "agent/doctor/user_mode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;

Sampling SamplingAt(int64_t paranoid) {
  return ReachOfUserMode(paranoid, std::nullopt, std::nullopt).sampling;
}

TEST(UserModeTest, EveryLevelOfParanoia) {
  EXPECT_EQ(SamplingAt(-1), Sampling::kWithKernel);
  EXPECT_EQ(SamplingAt(0), Sampling::kWithKernel);
  EXPECT_EQ(SamplingAt(1), Sampling::kWithKernel);
  EXPECT_EQ(SamplingAt(2), Sampling::kUserCode);
  EXPECT_EQ(SamplingAt(3), Sampling::kNone);
  EXPECT_EQ(SamplingAt(4), Sampling::kNone);
  EXPECT_TRUE(ReachOfUserMode(-1, 0, true).rings_unlimited);
  EXPECT_FALSE(ReachOfUserMode(0, 0, true).rings_unlimited);
}

TEST(UserModeTest, WhatTheKernelDoesCountsMoreThanItsLevel) {
  // A kernel without a distribution's patch treats 3 as 2; a seccomp filter may forbid what the level allows.
  EXPECT_EQ(ReachOfUserMode(3, 0, true).sampling, Sampling::kUserCode);
  EXPECT_EQ(ReachOfUserMode(1, 0, false).sampling, Sampling::kNone);
}

TEST(UserModeTest, EveryScopeOfPtrace) {
  EXPECT_TRUE(ReachOfUserMode(1, std::nullopt, true).alters_loops);
  EXPECT_TRUE(ReachOfUserMode(1, 0, true).alters_loops);
  for (const int64_t scope : {1, 2, 3}) {
    EXPECT_FALSE(ReachOfUserMode(1, scope, true).alters_loops) << scope;
    EXPECT_EQ(ReachOfUserMode(1, scope, true).sampling, Sampling::kWithKernel) << scope;
  }
  // Nobody knows which loops are hot.
  EXPECT_FALSE(ReachOfUserMode(3, 0, false).alters_loops);
}

TEST(UserModeTest, IsSaidInOneSentence) {
  EXPECT_THAT(Describe(ReachOfUserMode(2, 1, true)),
              AllOf(HasSubstr("user code"), HasSubstr("no saturations")));
  EXPECT_THAT(Describe(ReachOfUserMode(3, 0, false)), HasSubstr("a profile fails and says so"));
}

TEST(UserModeTest, TheDocumentHasTheSameTables) {
  std::ifstream file("docs/user_mode.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const std::string& row : UserModeRows()) EXPECT_THAT(text.str(), HasSubstr(row + "\n"));
  EXPECT_EQ(UserModeRows().size(), 10u);
}

}  // namespace
}  // namespace perfd::agent
