#include "core/analysis/imbalance.h"

#include <gtest/gtest.h>

#include <vector>

namespace perfd {
namespace {

TEST(SpreadOf, OddNumberOfRanks) {
  const std::vector<double> values = {2, 9, 1};
  EXPECT_EQ(SpreadOf(values), (Spread{1, 2, 9, 4, 1, 2.25}));
}

TEST(SpreadOf, EvenNumberOfRanks) {
  const std::vector<double> values = {4, 2, 0, 2};
  EXPECT_EQ(SpreadOf(values), (Spread{0, 2, 4, 2, 0, 2}));
  EXPECT_DOUBLE_EQ(SpreadOf(std::vector<double>{1, 2}).median, 1.5);
}

TEST(SpreadOf, NothingAndAllZero) {
  EXPECT_EQ(SpreadOf({}), Spread{});
  EXPECT_DOUBLE_EQ(SpreadOf(std::vector<double>{0, 0}).imbalance, 1);
}

TEST(SpreadOf, RanksWithNothingCount) {
  std::vector<double> sparse = {3, 1, 2};
  for (size_t zeros = 0; zeros < 6; ++zeros) {
    std::vector<double> dense = sparse;
    dense.resize(sparse.size() + zeros, 0);
    EXPECT_EQ(SpreadOf(sparse, zeros), SpreadOf(dense)) << zeros;
  }
}

TEST(SpreadOf, FirstMaximumIsWorst) {
  EXPECT_EQ(SpreadOf(std::vector<double>{1, 5, 5}).worst, 1u);
}

TEST(SpreadOf, EqualRanksAreNeverBelowOne) {
  const std::vector<double> values(10, 0.1);  // 0.1 * 10 / 10 rounds
  EXPECT_GE(SpreadOf(values).imbalance, 1);
  EXPECT_NEAR(SpreadOf(values).imbalance, 1, 1e-12);
}

}  // namespace
}  // namespace perfd
