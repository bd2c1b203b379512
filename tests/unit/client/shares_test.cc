#include "client/render/shares.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace perfd::client {
namespace {

TEST(SharesTest, ThirdsAddUp) {
  const std::vector<double> thirds = {1.0 / 3, 1.0 / 3, 1.0 / 3};
  EXPECT_EQ(RoundToTenths(thirds), (std::vector<int>{334, 333, 333}));
}

TEST(SharesTest, EverySumIsExactlyOneHundredPercent) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> any(0, 1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<double> shares(5);
    for (double& share : shares) share = any(random) * (random() % 3 == 0 ? 0 : 1);
    shares[0] += 1e-6;
    const std::vector<int> tenths = RoundToTenths(shares);
    ASSERT_EQ(std::accumulate(tenths.begin(), tenths.end(), 0), 1000);
  }
}

TEST(SharesTest, NothingStaysNothing) {
  const std::vector<double> none(5, 0.0);
  EXPECT_EQ(RoundToTenths(none), std::vector<int>(5, 0));
}

}  // namespace
}  // namespace perfd::client
