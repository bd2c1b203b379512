#include "core/analysis/stack_time.h"

#include <gtest/gtest.h>

namespace perfd {
namespace {

RankSummary Rank(int32_t rank, double seconds) {
  RankSummary summary;
  summary.info.rank = rank;
  summary.seconds = seconds;
  return summary;
}

TEST(StackTime, PathsOfARankShareItsTimeBySamples) {
  Report report;
  report.ranks = {Rank(0, 8), Rank(1, 8)};
  report.stacks = {{0, {"a"}, 30}, {1, {"a"}, 1}, {0, {"b"}, 10}};
  EXPECT_EQ(StackSeconds(report), (std::vector<double>{6, 8, 2}));
  EXPECT_EQ(JobSeconds(report), 16);
}

TEST(StackTime, ProcessesOfOneRankNumberAreOne) {
  Report report;
  report.ranks = {Rank(0, 3), Rank(0, 1)};
  report.stacks = {{0, {"a"}, 1}, {0, {"b"}, 1}};
  EXPECT_EQ(StackSeconds(report), (std::vector<double>{2, 2}));
}

TEST(StackTime, WhatIsNotKnownIsNothing) {
  Report report;
  EXPECT_TRUE(StackSeconds(report).empty());
  EXPECT_EQ(JobSeconds(report), 0);
  report.ranks = {Rank(0, 3)};
  report.stacks = {{1, {"nobody"}, 5}, {0, {"none"}, 0}};
  EXPECT_EQ(StackSeconds(report), (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace perfd
