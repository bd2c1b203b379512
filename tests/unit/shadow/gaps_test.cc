#include "agent/shadow/gaps.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kMb = 1 << 20, kGb = 1 << 30;

MapEntry Map(uint64_t start, uint64_t end, std::string path = "/a") {
  MapEntry map;
  map.start = start;
  map.end = end;
  map.path = std::move(path);
  return map;
}

TEST(GapsTest, BelowThePositionIndependentExecutable) {
  std::vector<MapEntry> maps = {
      Map(0x555500000000, 0x555500010000), Map(0x555501000000, 0x555502000000, "[heap]"),
      Map(0x7f0000000000, 0x7f0000100000), Map(0x7ffc00000000, 0x7ffc00100000, "[stack]")};
  Reach reach{0x555500001000, 0x555500002000};
  auto at = FindGap(maps, reach, kMb);
  ASSERT_TRUE(at.ok());
  EXPECT_EQ(*at, 0x555500000000 - kMb - 16 * kMb);  // a distance from what is there
}

TEST(GapsTest, AboveTheHeapAsFarAsReachGoes) {
  // Not position independent: 0x400000 has no room for 64 MB below.
  std::vector<MapEntry> maps = {Map(0x400000, 0x500000), Map(0x600000, 0x700000, "[heap]"),
                                Map(0x7f0000000000, 0x7f0000100000)};
  Reach reach{0x401000, 0x402000};
  auto at = FindGap(maps, reach, 64 * kMb);
  ASSERT_TRUE(at.ok());
  EXPECT_GT(*at, kGb);                             // the heap may grow
  EXPECT_LT(*at + 64 * kMb, reach.low + 2 * kGb);  // within reach
}

TEST(GapsTest, NoRoomIsSaid) {
  std::vector<MapEntry> maps = {Map(1 * kMb, 16 * kGb)};
  EXPECT_EQ(FindGap(maps, {8 * kGb, 8 * kGb + 10}, kMb).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(GapsTest, ExactFitAndOneByteTooMany) {
  const uint64_t low = 8 * kGb, size = 4096 * 4;
  std::vector<MapEntry> maps = {Map(kMb, low), Map(low + size, 16 * kGb)};
  auto at = FindGap(maps, {low - kMb, low - kMb + 10}, size);
  ASSERT_TRUE(at.ok());
  EXPECT_EQ(*at, low);
  EXPECT_FALSE(FindGap(maps, {low - kMb, low - kMb + 10}, size + 4096).ok());
}

TEST(GapsTest, NeverWhereTheStackGrows) {
  std::vector<MapEntry> maps = {
      Map(kMb, 0x7ff000000000),
      Map(0x7ff000000000 + 512 * kMb, 0x7ff000000000 + 600 * kMb, "[stack]"),
      Map(0x7ff000000000 + 600 * kMb, 0x7fff00000000)};
  EXPECT_FALSE(FindGap(maps, {0x7ff000000000 - kMb, 0x7ff000000000 - kMb + 10}, kMb).ok());
}

TEST(GapsTest, TheStackKeepsAGigabyte) {
  const uint64_t text = 64 * kGb, stack = text + 3 * kGb / 2;
  const std::vector<MapEntry> maps = {Map(kMb, text), Map(stack, stack + kMb, "[stack]"),
                                      Map(stack + kMb, 1024 * kGb)};
  const auto at = FindGap(maps, {text - kMb, text - kMb + 10}, kMb);
  ASSERT_TRUE(at.ok());
  EXPECT_GE(*at, text);
  EXPECT_LE(*at + kMb, stack - kGb);
}

TEST(GapsTest, AboveTheHeapDirectlyBelowWhatComesNext) {
  const uint64_t next = kGb;
  const std::vector<MapEntry> maps = {Map(kMb, 5 * kMb), Map(6 * kMb, 7 * kMb, "[heap]"),
                                      Map(next, 64 * kGb)};
  const auto at = FindGap(maps, {2 * kMb, 2 * kMb + 10}, 64 * kMb);
  ASSERT_TRUE(at.ok());
  EXPECT_EQ(*at, next - 64 * kMb);
}

TEST(GapsTest, NothingBeyondReachBelow) {
  const std::vector<MapEntry> maps = {Map(kMb, 4 * kGb), Map(8 * kGb, 64 * kGb)};
  EXPECT_FALSE(FindGap(maps, {16 * kGb, 16 * kGb + 10}, kMb).ok());
  const auto at = FindGap(maps, {9 * kGb, 9 * kGb + 10}, kMb);
  ASSERT_TRUE(at.ok());
  EXPECT_GE(*at + 2 * kGb, 9 * kGb + 10);
}

TEST(GapsTest, TheFirstMegabyteIsLeftAlone) {
  const std::vector<MapEntry> maps = {Map(2 * kMb, 64 * kGb)};
  EXPECT_FALSE(FindGap(maps, {4 * kMb, 4 * kMb + 10}, kMb + 4096).ok());
  const auto at = FindGap(maps, {4 * kMb, 4 * kMb + 10}, kMb);
  ASSERT_TRUE(at.ok());
  EXPECT_EQ(*at, kMb);
}

TEST(GapsTest, AGroupReachesToTheFarthestEnd) {
  const auto groups = GroupByReach({{1 * kGb, 1 * kGb + 100}, {1 * kGb + 10, 1 * kGb + 20}}, 1);
  ASSERT_TRUE(groups.ok());
  EXPECT_EQ(groups->at(0).high, 1 * kGb + 100);
}

TEST(GapsTest, DistantLoopsHaveTheirOwnGroups) {
  auto groups = GroupByReach({{0x7f0000000000, 0x7f0000001000},
                              {0x555500000000, 0x555500001000},
                              {0x555500100000, 0x555500101000}},
                             4);
  ASSERT_TRUE(groups.ok());
  ASSERT_EQ(groups->size(), 2u);
  EXPECT_EQ(groups->at(0).high, 0x555500101000u);
  EXPECT_FALSE(GroupByReach({{1 * kGb, 1 * kGb + 1}, {4 * kGb, 4 * kGb + 1}}, 1).ok());
}

}  // namespace
}  // namespace perfd::agent
