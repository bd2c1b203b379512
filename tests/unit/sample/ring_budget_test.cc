// The node's memory for rings, shared by sessions.
#include "agent/sample/ring/ring_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace perfd::agent {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;
constexpr uint64_t kCap = 512 * kMib;

// Takes so much in pieces of so many bytes as it gets.
uint64_t Fill(RingShare& share, uint64_t piece, std::vector<RingLease>* leases) {
  uint64_t taken = 0;
  for (auto lease = share.Acquire(piece); lease.ok(); lease = share.Acquire(piece)) {
    leases->push_back(*std::move(lease));
    taken += piece;
  }
  return taken;
}

TEST(RingCapBytes, IsOnePercentAndNotMoreThanHalfAGibibyte) {
  EXPECT_EQ(RingCapBytes(uint64_t{1000} * kMib), 10 * kMib);
  EXPECT_EQ(RingCapBytes(uint64_t{51200} * kMib), kCap);
  EXPECT_EQ(RingCapBytes(uint64_t{1} << 42), kCap);
  EXPECT_GT(NodeMemoryBytes(), 64 * kMib);
}

TEST(RingBudget, OneSessionLeavesEveryOtherItsOwnPart) {
  RingBudget budget(kCap);
  std::deque<RingShare> shares;
  std::vector<RingLease> leases;
  uint64_t sum = 0, before = kCap;
  for (uint64_t i = 0; i < RingBudget::kMostShares; ++i) {
    RingShare& share = shares.emplace_back(&budget);
    const uint64_t taken = Fill(share, kMib / 4, &leases);
    EXPECT_GE(taken, kCap / 2 / RingBudget::kMostShares) << i;
    EXPECT_LE(taken, before) << i;
    before = taken;
    sum += taken;
  }
  EXPECT_EQ(budget.used_bytes(), sum);
  EXPECT_LE(sum, kCap);
  // Neither do more sessions than there should be.
  RingShare& more = shares.emplace_back(&budget);
  EXPECT_LE(sum + Fill(more, kMib / 4, &leases), kCap);
}

TEST(RingBudget, TheFirstHasHalfOfWhatIsCommon) {
  RingBudget budget(kCap);
  RingShare share(&budget);
  EXPECT_EQ(share.room(), kCap / 32 + kCap / 4);
  std::vector<RingLease> leases;
  EXPECT_EQ(Fill(share, kMib, &leases), kCap / 32 + kCap / 4);
  EXPECT_EQ(share.room(), 0u);
  RingShare second(&budget);
  EXPECT_EQ(second.room(), kCap / 32 + kCap / 8);
}

TEST(RingBudget, WhatIsGivenBackIsThereForOthers) {
  RingBudget budget(kCap);
  RingShare first(&budget), second(&budget);
  std::vector<RingLease> leases;
  const uint64_t room = second.room();
  Fill(first, kMib, &leases);
  EXPECT_LT(second.room(), room);
  leases.clear();
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_EQ(second.room(), room);
  // The kernel gave less than was asked for; a lease that was moved gives back once.
  auto lease = first.Acquire(8 * kMib);
  ASSERT_TRUE(lease.ok());
  lease->ShrinkTo(3 * kMib);
  lease->ShrinkTo(5 * kMib);
  EXPECT_EQ(budget.used_bytes(), 3 * kMib);
  {
    RingLease moved = *std::move(lease);
    EXPECT_EQ(budget.used_bytes(), 3 * kMib);
  }
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(RingBudget, ARefusalHasTheFigures) {
  RingBudget budget(32 * kMib);
  RingShare share(&budget);
  const auto refused = share.Acquire(16 * kMib);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()),
              testing::HasSubstr("hold 0.0 MiB, and may hold 9.0 of the 32.0 MiB"));
  EXPECT_EQ(budget.used_bytes(), 0u);
}

TEST(RingBudget, WithoutOneThereIsNoLimit) {
  RingShare share(nullptr);
  EXPECT_EQ(share.room(), kUnlimitedBytes);
  EXPECT_TRUE(share.Acquire(uint64_t{1} << 60).ok());
}

}  // namespace
}  // namespace perfd::agent
