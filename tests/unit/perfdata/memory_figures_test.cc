#include "core/analysis/memory/memory_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/analysis/memory/beyond_share.h"

namespace perfd {
namespace {

SampledAccess Load(MemoryLevel level, uint64_t latency, int32_t tid = 1, uint64_t second = 0) {
  SampledAccess sample;
  sample.tid = tid;
  sample.time_ns = second * 1'000'000'000;
  sample.period = 1000;
  sample.access.address = 0x7f0000000000;
  sample.access.latency_cycles = latency;
  sample.access.source.operation = MemoryOperation::kLoad;
  sample.access.source.level = level;
  return sample;
}

const BeyondShare& Of(const MemoryFigures& figures, MemoryBorder border) {
  return figures.beyond[static_cast<size_t>(border)];
}

TEST(LatencyHistogram, BucketsCoverEveryLatencyOnce) {
  uint64_t next = 0;
  for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i) {
    const LatencyRange range = LatencyHistogram::RangeOf(i);
    EXPECT_EQ(range.low, next) << i;
    next = range.high;
    EXPECT_EQ(LatencyHistogram::BucketOf(range.low), i);
    EXPECT_EQ(LatencyHistogram::BucketOf(range.high - 1), i);
    if (range.low >= 4 && range.high != UINT64_MAX) {
      EXPECT_LE(range.high - range.low, range.low / 4 + 1) << "25 % at most";
    }
  }
  EXPECT_EQ(next, UINT64_MAX);
}

TEST(LatencyHistogram, Quantiles) {
  LatencyHistogram h;
  EXPECT_EQ(h.Quantile(0.5), (LatencyRange{0, 0}));
  h.Add(10, 50);
  h.Add(1000, 50);
  EXPECT_EQ(h.Quantile(0.5), LatencyHistogram::RangeOf(LatencyHistogram::BucketOf(10)));
  EXPECT_EQ(h.Quantile(0.51), LatencyHistogram::RangeOf(LatencyHistogram::BucketOf(1000)));
  EXPECT_EQ(h.Quantile(0), h.Quantile(0.1));
}

TEST(MemoryProfile, AnyOrderAndGroupingGivesTheSameSums) {
  std::mt19937 random(7);
  std::vector<SampledAccess> samples;
  for (int i = 0; i < 1000; ++i) {
    SampledAccess s = Load(static_cast<MemoryLevel>(random() % kMemoryLevels), random() % 5000,
                           static_cast<int32_t>(random() % 8), random() % 5);
    s.kernel = random() % 5 == 0;
    s.access.source.missed = random() % 7 == 0;
    s.access.source.tlb = static_cast<TlbResult>(random() % kTlbResults);
    if (random() % 6 == 0) s.access.source.operation = MemoryOperation::kStore;
    samples.push_back(s);
  }
  MemoryProfile whole;
  for (const SampledAccess& s : samples) whole.Add(s);
  uint64_t counted = whole.stores.samples;
  for (size_t i = 0; i < kMemoryLevels; ++i)
    counted += whole.loads[i].samples + whole.missed[i].samples;
  EXPECT_EQ(counted, 1000u) << "each is counted once";
  for (int round = 0; round < 20; ++round) {
    std::shuffle(samples.begin(), samples.end(), random);
    std::vector<MemoryProfile> parts(1 + random() % 9);
    for (const SampledAccess& s : samples) parts[random() % parts.size()].Add(s);
    MemoryProfile merged;
    for (const MemoryProfile& part : parts) merged.Merge(part);
    EXPECT_EQ(merged, whole);
  }
}

TEST(IsBeyond, WhatALevelTellsOfEachBorder) {
  const auto beyond = [](MemoryLevel level, MemoryBorder border, bool missed = false) {
    MemorySource source;
    source.level = level;
    source.missed = missed;
    return IsBeyond(source, border);
  };
  using L = MemoryLevel;
  using B = MemoryBorder;
  EXPECT_EQ(beyond(L::kL1, B::kL1), false);
  EXPECT_EQ(beyond(L::kL2, B::kL1), true);
  EXPECT_EQ(beyond(L::kL2, B::kL2), false);
  EXPECT_EQ(beyond(L::kFillBuffer, B::kL1), true);
  EXPECT_EQ(beyond(L::kFillBuffer, B::kL2), std::nullopt) << "it may come from anywhere";
  EXPECT_EQ(beyond(L::kOtherCache, B::kL2), true);
  EXPECT_EQ(beyond(L::kOtherCache, B::kL3), std::nullopt) << "of the same L3 or not";
  EXPECT_EQ(beyond(L::kRemoteCache, B::kNode), true);
  EXPECT_EQ(beyond(L::kLocalDram, B::kL3), true);
  EXPECT_EQ(beyond(L::kLocalDram, B::kNode), false);
  EXPECT_EQ(beyond(L::kDram, B::kNode), std::nullopt);
  EXPECT_EQ(beyond(L::kUnknown, B::kL1), std::nullopt);
  EXPECT_EQ(beyond(L::kL2, B::kL2, true), true) << "a miss of L2";
  EXPECT_EQ(beyond(L::kL2, B::kL1, true), true);
  EXPECT_EQ(beyond(L::kL2, B::kL3, true), std::nullopt);
  EXPECT_EQ(beyond(L::kL3, B::kNode, true), std::nullopt);
}

TEST(MemoryTally, SharesAreOfTheTimeOfLoads) {
  MemoryTally tally;
  // 10 s of two threads: 30 loads of 10 cycles in L1, 10 of 90 in L3 each second: 75 % of the time is beyond L2.
  for (uint64_t second = 0; second < 10; ++second)
    for (int32_t tid = 1; tid <= 2; ++tid) {
      for (int i = 0; i < 30; ++i) tally.Add(Load(MemoryLevel::kL1, 10, tid, second));
      for (int i = 0; i < 10; ++i) tally.Add(Load(MemoryLevel::kL3, 90, tid, second));
    }
  const MemoryFigures figures = tally.Figures();
  const BeyondShare& l2 = Of(figures, MemoryBorder::kL2);
  EXPECT_EQ(l2.why_not, NoShare::kNone);
  EXPECT_NEAR(l2.share, 0.75, 1e-9);
  EXPECT_LT(l2.interval.low, 0.75);
  EXPECT_GT(l2.interval.high, 0.75);
  EXPECT_EQ(l2.samples, 800u);
  EXPECT_NEAR(Of(figures, MemoryBorder::kL3).share, 0, 1e-9);
}

TEST(MemoryTally, AHandfulHasNoShare) {
  MemoryTally tally;
  for (uint64_t i = 0; i + 1 < kFewestSamples; ++i) tally.Add(Load(MemoryLevel::kL3, 90, 1, i));
  EXPECT_EQ(Of(tally.Figures(), MemoryBorder::kL1).why_not, NoShare::kTooFew);
  tally.Add(Load(MemoryLevel::kL3, 90));
  EXPECT_EQ(Of(tally.Figures(), MemoryBorder::kL1).why_not, NoShare::kNone);
}

TEST(MemoryTally, WhereMostTimeIsNotToldThereIsNoShare) {
  MemoryTally tally;
  for (uint64_t i = 0; i < 60; ++i) {
    tally.Add(Load(MemoryLevel::kL2, 20, 1, i));
    tally.Add(Load(MemoryLevel::kFillBuffer, 50, 1, i));
  }
  const MemoryFigures figures = tally.Figures();
  EXPECT_EQ(Of(figures, MemoryBorder::kL1).why_not, NoShare::kNone);
  EXPECT_EQ(Of(figures, MemoryBorder::kL2).why_not, NoShare::kNotTold);
  EXPECT_EQ(Of(figures, MemoryBorder::kL2).untold, 60u);
}

// IBS has no latency for what it found in L1.
TEST(MemoryTally, WhereLoadsHaveNoLatencyThereIsNoShare) {
  MemoryTally tally;
  for (uint64_t i = 0; i < 900; ++i) tally.Add(Load(MemoryLevel::kL1, 0, 1, i % 20));
  for (uint64_t i = 0; i < 100; ++i) tally.Add(Load(MemoryLevel::kDram, 300, 1, i % 20));
  for (const BeyondShare& share : tally.Figures().beyond) {
    EXPECT_EQ(share.why_not, NoShare::kNoLatency);
    EXPECT_EQ(share.without_latency, 900u);
  }
}

TEST(MemoryTally, AFewLongLoadsOfOneClusterAreNoCertainty) {
  MemoryTally tally;
  for (int i = 0; i < 1000; ++i) tally.Add(Load(MemoryLevel::kL1, 5));
  for (int i = 0; i < 10; ++i) tally.Add(Load(MemoryLevel::kL3, 500));
  const BeyondShare l2 = Of(tally.Figures(), MemoryBorder::kL2);
  EXPECT_NEAR(l2.share, 0.5, 1e-9);
  EXPECT_LT(l2.interval.low, 0.40) << "half of the time is of ten samples";
  EXPECT_GT(l2.interval.high, 0.60);
}

TEST(MemoryTally, SharesDoNotDependOnThePeriod) {
  for (const uint64_t period :
       {uint64_t{1}, uint64_t{1000}, uint64_t{1} << 31, uint64_t{1} << 40}) {
    MemoryTally tally;
    for (uint64_t i = 0; i < 1100; ++i) {
      SampledAccess s =
          i % 11 == 0 ? Load(MemoryLevel::kDram, 500, 1, i) : Load(MemoryLevel::kL1, 5, 1, i);
      s.period = period;
      tally.Add(s);
    }
    EXPECT_NEAR(Of(tally.Figures(), MemoryBorder::kL1).share, 50000.0 / 55000, 1e-6) << period;
  }
}

TEST(MemoryTally, HostileFiguresOverflowNothing) {
  MemoryTally tally;
  SampledAccess s = Load(MemoryLevel::kL3, UINT64_MAX);
  s.period = UINT64_MAX;
  for (int i = 0; i < 100; ++i) tally.Add(s);
  s.access.latency_cycles = 0;
  tally.Add(s);
  const MemoryFigures figures = tally.Figures();
  EXPECT_EQ(figures.profile.without_latency, 1u);
  EXPECT_NE(Of(figures, MemoryBorder::kL1).why_not, NoShare::kNone) << "no load takes so long";
}

}  // namespace
}  // namespace perfd
