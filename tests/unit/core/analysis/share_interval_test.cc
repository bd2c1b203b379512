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
}

// Newcombe, Statistics in Medicine 17 (1998), table I: 81 of 263 gives 0.2553..0.3662, 15 of 148
// gives 0.0624..0.1605, 0 of 20 gives 0..0.1611.
TEST(WilsonInterval, MatchesPublishedExamples) {
  EXPECT_NEAR(WilsonInterval(81, 263).low, 0.2553, 5e-5);
  EXPECT_NEAR(WilsonInterval(81, 263).high, 0.3662, 5e-5);
  EXPECT_NEAR(WilsonInterval(15, 148).low, 0.0624, 5e-5);
  EXPECT_NEAR(WilsonInterval(15, 148).high, 0.1605, 5e-5);
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
  EXPECT_EQ(ShareInterval(sums), WilsonInterval(81, 263));
}

TEST(ShareInterval, NeverNarrowerThanWilson) {
  ClusterSums sums;  // all clusters alike: no spread between them
  for (int i = 0; i < 50; ++i) sums.Add(100, 30);
  EXPECT_EQ(ShareInterval(sums), WilsonInterval(1500, 5000));
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
    const Interval interval = WilsonInterval(y, x);
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

}  // namespace
}  // namespace perfd
