#include "core/analysis/job_pauses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace perfd {
namespace {

LeasedPause Pause(int64_t begin, int64_t length, int64_t error = 0, uint64_t generation = 1) {
  return {generation, begin, length, error};
}

TEST(OverlappedNs, OfPausesThatOverlapOnlyTheLongestCounts) {
  using Pauses = std::vector<LeasedPause>;
  EXPECT_EQ(OverlappedNs(Pauses{}), 0);
  EXPECT_EQ(OverlappedNs(Pauses{Pause(0, 20)}), 0);
  EXPECT_EQ(OverlappedNs(Pauses{Pause(0, 20), Pause(0, 20)}), 20);
  EXPECT_EQ(OverlappedNs(Pauses{Pause(0, 20), Pause(5, 30)}), 20);  // 30 of 50
  EXPECT_EQ(OverlappedNs(Pauses{Pause(0, 20), Pause(5, 5), Pause(19, 40)}), 25);
  // A chain: each with the next.
  EXPECT_EQ(OverlappedNs(Pauses{Pause(38, 20), Pause(0, 20), Pause(19, 20)}), 40);
}

TEST(OverlappedNs, PausesOneAfterTheOtherAreSummed) {
  using Pauses = std::vector<LeasedPause>;
  EXPECT_EQ(OverlappedNs(Pauses{Pause(0, 20), Pause(20, 20)}), 0);
  EXPECT_EQ(OverlappedNs(Pauses{Pause(0, 20), Pause(100, 20)}), 0);
  // Two pairs in one window.
  EXPECT_EQ(OverlappedNs(Pauses{Pause(0, 20), Pause(100, 7), Pause(1, 3), Pause(101, 9)}), 3 + 7);
}

TEST(OverlappedNs, WhatMayNotOverlapIsSummed) {
  using Pauses = std::vector<LeasedPause>;
  // They seem to overlap by 5, and each clock may be off by 3.
  EXPECT_EQ(OverlappedNs(Pauses{Pause(0, 20, 3), Pause(15, 20, 3)}), 0);
  EXPECT_EQ(OverlappedNs(Pauses{Pause(0, 20, 2), Pause(15, 20, 2)}), 20);
  EXPECT_EQ(OverlappedNs(Pauses{Pause(0, 20), Pause(0, 20, 10)}), 0) << "shorter than its error";
}

TEST(JobPauses, OfOneNodeAreAUnionAndOfSeveralASum) {
  JobPauses pauses;
  pauses.Add("a", 0, 20);
  pauses.Add("a", 10, 30);  // another rank
  EXPECT_EQ(pauses.TotalNs(), 30);
  pauses.Add("b", 0, 20);  // by another clock, which may say anything
  EXPECT_EQ(pauses.TotalNs(), 50);
}

TEST(JobPauses, LeasedPausesOfOneGenerationCountOnce) {
  JobPauses pauses;
  for (const char* node : {"a", "b", "c"}) {
    pauses.Add(node, 1000, 1020);
    pauses.Add(node, 5000, 5020);
  }
  EXPECT_EQ(pauses.TotalNs(), 120);
  pauses.AddLeased("a", Pause(3, 20, 1, 7));
  EXPECT_EQ(pauses.TotalNs(), 120);
  pauses.AddLeased("b", Pause(4, 20, 1, 7));
  EXPECT_EQ(pauses.TotalNs(), 100);
  pauses.AddLeased("c", Pause(4, 20, 1, 8));  // elsewhere in time
  EXPECT_EQ(pauses.TotalNs(), 100);
  pauses.AddLeased("c", Pause(2, 20, 1, 7));
  EXPECT_EQ(pauses.TotalNs(), 80);
  EXPECT_EQ(pauses.SharedNs(), 40);
}

TEST(JobPauses, NobodyCanClaimThatTheJobStoodLessThanANode) {
  JobPauses pauses;
  pauses.Add("a", 0, 20);
  pauses.Add("b", 0, 30);
  pauses.AddLeased("a", Pause(0, 1000));
  pauses.AddLeased("b", Pause(0, 1000));
  EXPECT_EQ(pauses.TotalNs(), 30);
}

TEST(JobPauses, OrderAndRepetitionDoNotMatter) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<JobPauses> parts(20);
    for (JobPauses& part : parts) {
      const std::string node(1, static_cast<char>('a' + random() % 3));
      const auto begin = static_cast<int64_t>(random() % 100);
      part.Add(node, begin, begin + static_cast<int64_t>(random() % 9));
      part.AddLeased(node,
                     Pause(begin % 7, 1 + static_cast<int64_t>(random() % 9), 0, random() % 3));
    }
    JobPauses forward, backward;
    for (const JobPauses& part : parts) forward.Merge(part);
    std::reverse(parts.begin(), parts.end());
    for (const JobPauses& part : parts) backward.Merge(part);
    EXPECT_EQ(forward, backward);
    JobPauses twice = forward;
    twice.Merge(backward);
    EXPECT_EQ(twice, forward);
  }
}

TEST(JobPauses, LeasedPausesAreBoundedAndTheRestIsCounted) {
  JobPauses pauses;
  for (uint64_t i = 0; i < JobPauses::kMaxLeased + 3; ++i) pauses.AddLeased("a", Pause(0, 1, 0, i));
  EXPECT_EQ(pauses.leased().size(), JobPauses::kMaxLeased);
  EXPECT_EQ(pauses.lost(), 3u);
  pauses.AddLost(4);
  EXPECT_EQ(pauses.lost(), 7u);
}

TEST(LeaseLedger, ChargesWhatTheJobPausedOverTheNodeThatPausedMost) {
  LeaseLedger ledger;
  EXPECT_EQ(ledger.Charge(), 0);
  ledger.Add("a", Pause(0, 20, 0, 1));
  EXPECT_EQ(ledger.Charge(), 0) << "the others have not spoken yet";
  ledger.Add("b", Pause(1, 20, 0, 1));
  EXPECT_EQ(ledger.Charge(), 1);
  ledger.Add("a", Pause(0, 20, 0, 2));
  ledger.Add("b", Pause(30, 20, 0, 2));  // in the same window, but later
  EXPECT_DOUBLE_EQ(ledger.Charge(), 1.5);
  ledger.Add("b", Pause(0, 20, 0, 3));
  ledger.Add("a", Pause(0, 20, 0, 4));
  EXPECT_DOUBLE_EQ(ledger.Charge(), 100.0 / 60);
}

TEST(LeaseLedger, ForgetsGenerationsAndKeepsTheirSum) {
  LeaseLedger ledger;
  const uint64_t many = 3 * LeaseLedger::kMaxOpen;
  for (uint64_t i = 0; i < many; ++i) {
    ledger.Add("a", Pause(0, 20, 0, i));
    ledger.Add("b", Pause(0, 20, 0, i));
  }
  EXPECT_EQ(ledger.Charge(), 1);
  // Too late for their generation: they count in full.
  for (uint64_t i = 0; i < LeaseLedger::kMaxOpen; ++i) ledger.Add("c", Pause(0, 20, 0, i));
  EXPECT_DOUBLE_EQ(ledger.Charge(), 1 + 1.0 / 3);
}

}  // namespace
}  // namespace perfd
