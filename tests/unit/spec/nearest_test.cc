#include "core/spec/nearest.h"

#include <gtest/gtest.h>

namespace perfd {
namespace {

TEST(NearestTest, DistanceCountsSwapsAsOne) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("abc", ""), 3u);
  EXPECT_EQ(EditDistance("frequncy", "frequency"), 1u);
  EXPECT_EQ(EditDistance("rnaks", "ranks"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

TEST(NearestTest, SuggestsOnlyLikelyMisspellings) {
  const std::vector<std::string> keys = {"frequency", "coverage", "event"};
  EXPECT_EQ(Nearest("frequncy", keys), "frequency");
  EXPECT_EQ(Nearest("Coverage", keys), "coverage");
  EXPECT_EQ(Nearest("colour", keys), std::nullopt);
  EXPECT_EQ(Nearest("", keys), std::nullopt);
  EXPECT_EQ(Nearest(std::string(65, 'e'), keys), std::nullopt);
}

}  // namespace
}  // namespace perfd
