#include "core/analysis/share_interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

namespace perfd {
namespace {

TEST(ShareInterval, KnowsNothingWithoutSamples) {
  EXPECT_EQ(ShareInterval({}), (Interval{0, 1}));
  EXPECT_EQ(WilsonInterval(0, 0), (Interval{0, 1}));
  EXPECT_EQ(EffectiveSamples({}), 0);
}

// Newcombe, Statistics in Medicine 17 (1998), table I: 81 of 263 gives 0.2553..0.3662, 15 of 148
// gives 0.0624..0.1605, 0 of 20 gives 0..0.1611.
TEST(WilsonInterval, MatchesPublishedExamples) {
  EXPECT_NEAR(WilsonInterval(81 / 263.0, 263).low, 0.2553, 5e-5);
  EXPECT_NEAR(WilsonInterval(81 / 263.0, 263).high, 0.3662, 5e-5);
  EXPECT_NEAR(WilsonInterval(15 / 148.0, 148).low, 0.0624, 5e-5);
  EXPECT_NEAR(WilsonInterval(15 / 148.0, 148).high, 0.1605, 5e-5);
  EXPECT_NEAR(WilsonInterval(0, 20).low, 0, 1e-12);
  EXPECT_NEAR(WilsonInterval(0, 20).high, 0.1611, 5e-5);
}

TEST(StudentQuantile, TableAndSeriesMeet) {
  EXPECT_DOUBLE_EQ(StudentQuantile(0), StudentQuantile(1));
  EXPECT_NEAR(StudentQuantile(30), 2.0423, 1e-4);
  EXPECT_NEAR(StudentQuantile(31), 2.0395, 1e-4);
  EXPECT_NEAR(StudentQuantile(120), 1.9799, 1e-4);
  EXPECT_NEAR(StudentQuantile(1'000'000), 1.95997, 1e-5);
  for (uint64_t v = 1; v < 100; ++v) EXPECT_GT(StudentQuantile(v), StudentQuantile(v + 1)) << v;
}

void ExpectNear(const Interval& found, const Interval& wanted) {
  EXPECT_NEAR(found.low, wanted.low, 1e-12);
  EXPECT_NEAR(found.high, wanted.high, 1e-12);
}

// Two clusters (x, y) = (100, 20), (100, 40): R = 0.3, d = -10 and 10, sum d^2 = 200,
// v = 2/1 * 200 / 200^2 = 0.01, half width = 12.7062 * 0.1 > 1: everything is possible.
// Four clusters 20, 40, 20, 40: v = 4/3 * 400 / 400^2 = 1/300, half = 3.1824 * 0.057735 = 0.18374.
TEST(ShareInterval, HandComputed) {
  ClusterSums sums;
  sums.Add(100, 20);
  sums.Add(100, 40);
  EXPECT_EQ(ShareInterval(sums), (Interval{0, 1}));
  sums.Add(100, 20);
  sums.Add(100, 40);
  EXPECT_NEAR(ShareInterval(sums).low, 0.3 - 0.18374, 1e-4);
  EXPECT_NEAR(ShareInterval(sums).high, 0.3 + 0.18374, 1e-4);
}

TEST(ShareInterval, OneClusterIsWilson) {
  ClusterSums sums;
  sums.Add(263, 81);
  ExpectNear(ShareInterval(sums), WilsonInterval(81 / 263.0, 263));
}

TEST(ShareInterval, NeverNarrowerThanWilson) {
  ClusterSums sums;  // all clusters alike: no spread between them
  for (int i = 0; i < 50; ++i) sums.Add(100, 30);
  ExpectNear(ShareInterval(sums), WilsonInterval(0.3, 5000));
}

TEST(ShareInterval, TheUnitDoesNotMatter) {
  constexpr uint64_t kEach = 5'025'126;  // ns at 199 Hz
  ClusterSums samples, ns;
  for (const uint64_t y : {20u, 45u, 31u, 0u, 100u}) {
    samples.Add(100, y);
    ns.Add(100 * kEach, y * kEach, kEach);
  }
  EXPECT_NEAR(EffectiveSamples(ns), 500, 1e-6);
  ExpectNear(ShareInterval(ns), ShareInterval(samples));
}

// 1,990 samples of 5 ms and 100 of 100 ms: 20 s in all, of which 0.1 s are seen once, or twenty times.
TEST(EffectiveSamples, APlaceHasAsManyAsWereSeenInIt) {
  ClusterSums seldom, often;
  seldom.Add(1990 * 5, 0, 5);
  seldom.Add(100 * 100, 100, 100);
  often.Add(1990 * 5, 20 * 5, 5);
  often.Add(100 * 100, 0, 100);
  const double share = 100.0 / 19950;
  EXPECT_NEAR(share * EffectiveSamples(seldom), 1, 0.02);
  EXPECT_NEAR(share * EffectiveSamples(often), 20, 2);
  EXPECT_GT(WilsonInterval(share, EffectiveSamples(seldom)).high, 0.027);  // of 1 in 200
  EXPECT_LT(WilsonInterval(share, EffectiveSamples(often)).high, 0.009);
}

// Kish: (sum w)^2 / sum w^2 when everything is in the place, or nothing.
TEST(EffectiveSamples, AllOrNothing) {
  for (const bool all : {true, false}) {
    ClusterSums sums;
    sums.Add(1000 * 5, all ? 1000 * 5 : 0, 5);
    sums.Add(50 * 100, all ? 50 * 100 : 0, 100);
    EXPECT_NEAR(EffectiveSamples(sums), 1e4 * 1e4 / (1000 * 25 + 50 * 1e4), 1e-9);
  }
}

TEST(ShareInterval, StaysWithinZeroAndOneAndHoldsTheShare) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 2000; ++round) {
    ClusterSums sums;
    for (uint64_t n = random() % 6; n > 0; --n) {
      const uint64_t x = 1 + random() % 50;
      sums.Add(x, random() % (x + 1));
    }
    const Interval interval = ShareInterval(sums);
    EXPECT_GE(interval.low, 0);
    EXPECT_LE(interval.high, 1);
    EXPECT_LE(interval.low, interval.high);
    if (sums.x == 0) continue;
    const double share = static_cast<double>(sums.y) / static_cast<double>(sums.x);
    EXPECT_LE(interval.low, share + 1e-12);
    EXPECT_GE(interval.high, share - 1e-12);
  }
}

// Share of 1000 simulated profiles whose interval holds the true share.
double Coverage(double truth, int clusters, uint64_t seed,
                const std::function<double(std::mt19937_64&)>& share_of_cluster) {
  std::mt19937_64 random(seed);
  int held = 0;
  for (int run = 0; run < 1000; ++run) {
    ClusterSums sums;
    for (int c = 0; c < clusters; ++c) {
      const uint64_t x = 50 + random() % 100;
      std::binomial_distribution<uint64_t> hits(x, share_of_cluster(random));
      sums.Add(x, hits(random));
    }
    const Interval interval = ShareInterval(sums);
    if (interval.low <= truth && truth <= interval.high) ++held;
  }
  return held / 1000.0;
}

TEST(ShareIntervalSimulation, IndependentSamplesAreCovered) {
  const double covered = Coverage(0.3, 24, 1, [](std::mt19937_64&) { return 0.3; });
  EXPECT_GE(covered, 0.90);
}

// Half of the clusters spend 10 %, the other half 50 % in the loop: samples within a cluster are alike.
double TwoKinds(std::mt19937_64& random) {
  return random() % 2 == 0 ? 0.1 : 0.5;
}

TEST(ShareIntervalSimulation, ClusteredSamplesAreCovered) {
  EXPECT_GE(Coverage(0.3, 24, 2, TwoKinds), 0.90);
  EXPECT_GE(Coverage(0.3, 100, 3, TwoKinds), 0.90);
}

// Of 24 clusters of 10 s every other one has a sample every 5 ms and half of its time in the loop, the rest one every 100 ms and
// a tenth. The share of time is 0.3; the share of samples is 0.48.
double TwoRates(uint64_t seed, const std::function<uint64_t(uint64_t each)>& weight) {
  std::mt19937_64 random(seed);
  int held = 0;
  for (int run = 0; run < 1000; ++run) {
    ClusterSums sums;
    for (int c = 0; c < 24; ++c) {
      const uint64_t each = c % 2 == 0 ? 5 : 100;
      const uint64_t count = 10'000 / each;
      std::binomial_distribution<uint64_t> hits(count, c % 2 == 0 ? 0.5 : 0.1);
      sums.Add(count * weight(each), hits(random) * weight(each), weight(each));
    }
    const Interval interval = ShareInterval(sums);
    if (interval.low <= 0.3 && 0.3 <= interval.high) ++held;
  }
  return held / 1000.0;
}

TEST(ShareIntervalSimulation, SamplesThatStandForDifferentTimesAreCovered) {
  EXPECT_GE(TwoRates(6, [](uint64_t each) { return each; }), 0.90);
  EXPECT_LT(TwoRates(6, [](uint64_t) { return uint64_t{1}; }), 0.05)
      << "by samples the share is another";
}

TEST(ShareIntervalSimulation, WilsonAloneWouldMissThem) {
  std::mt19937_64 random(4);
  int held = 0;
  for (int run = 0; run < 1000; ++run) {
    uint64_t x = 0;
    uint64_t y = 0;
    for (int c = 0; c < 24; ++c) {
      std::binomial_distribution<uint64_t> hits(100, TwoKinds(random));
      x += 100;
      y += hits(random);
    }
    const Interval interval =
        WilsonInterval(static_cast<double>(y) / static_cast<double>(x), static_cast<double>(x));
    if (interval.low <= 0.3 && 0.3 <= interval.high) ++held;
  }
  EXPECT_LT(held, 700) << "else the clusters of the test above are no test";
}

TEST(ClusterSums, StayExactForLargeCounts) {
  ClusterSums sums;
  const uint64_t big = uint64_t{1} << 40;
  sums.Add(big, big);
  sums.Add(1, 1);
  EXPECT_EQ(sums.xx, (absl::uint128(1) << 80) + 1);
  EXPECT_EQ(sums.yy, sums.xx);
  EXPECT_EQ(sums.xy, sums.xx);
}

// What the header promises: 2^28 windows of 2^50 ns.
TEST(ClusterSums, HoldTheSquaresOfTheLargestWindows) {
  const absl::uint128 square = absl::uint128(1) << 100;
  EXPECT_GT(square * ((absl::uint128(1) << 28) - 1), square);
  EXPECT_EQ(square * (absl::uint128(1) << 28), absl::uint128(0)) << "one more does not fit";
  ClusterSums sums;
  sums.xx = square * ((absl::uint128(1) << 28) - 2);
  const absl::uint128 before = sums.xx;
  sums.Add(uint64_t{1} << 50, 0, 1);
  EXPECT_EQ(sums.xx - before, square);
  EXPECT_GT(sums.xx, before);
}

}  // namespace
}  // namespace perfd
