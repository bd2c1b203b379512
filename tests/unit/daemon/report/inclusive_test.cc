#include "daemon/report/inclusive.h"

#include <gtest/gtest.h>

namespace perfd::daemon {
namespace {

LocationTotals Loop(uint64_t header, uint64_t parent, int32_t depth, uint64_t cpu_ns,
                    uint64_t high = 0) {
  LocationTotals location;
  location.location.category = Category::kLoop;
  location.location.module_id = "aa";
  location.location.function_low = 0x100;
  location.location.loop.emplace();
  location.location.loop->header = header;
  location.location.loop->low = header;
  location.location.loop->high = high == 0 ? header + 1 : high;
  location.location.loop->parent_header = parent;
  location.location.loop->depth = depth;
  location.counts.cpu_ns = cpu_ns;
  return location;
}

using Sums = std::vector<uint64_t>;

Sums CpuNs(const std::vector<LocationTotals>& locations) {
  Sums sums;
  for (const InclusiveTime& time : InclusiveTimes(locations)) sums.push_back(time.cpu_ns);
  return sums;
}

TEST(InclusiveTimes, FollowsTheChainOfParents) {
  EXPECT_EQ(CpuNs({Loop(1, 0, 1, 10), Loop(2, 1, 2, 20), Loop(3, 2, 3, 30), Loop(4, 1, 2, 5)}),
            (Sums{65, 50, 30, 5}));
}

TEST(InclusiveTimes, ElapsedTimeFollowsTheSameParents) {
  LocationTotals outer = Loop(1, 0, 1, 10);
  LocationTotals inner = Loop(2, 1, 2, 20);
  outer.counts.wall_ns = 3;
  inner.counts.wall_ns = 4;
  EXPECT_EQ(InclusiveTimes({outer, inner}), (std::vector<InclusiveTime>{{30, 7}, {20, 4}}));
}

TEST(InclusiveTimes, OtherFunctionsAndModulesAreApart) {
  LocationTotals function = Loop(2, 1, 2, 20);
  function.location.function_low = 0x200;
  LocationTotals module = Loop(3, 1, 2, 30);
  module.location.module_id = "bb";
  EXPECT_EQ(CpuNs({Loop(1, 0, 1, 10), function, module}), (Sums{10, 20, 30}));
}

TEST(InclusiveTimes, AParentWithoutSamplesIsBridgedByAddress) {
  // 1..100 holds 10..50 (never sampled), which holds 20.
  EXPECT_EQ(CpuNs({Loop(1, 0, 1, 10, 100), Loop(20, 10, 3, 7)}), (Sums{17, 7}));
  EXPECT_EQ(CpuNs({Loop(1, 0, 1, 10, 15), Loop(20, 10, 3, 7)}), (Sums{10, 7}));
}

// A loop in two parts: what lies between them belongs to others.
TEST(InclusiveTimes, ALoopHoldsWhatLiesInAnyOfItsParts) {
  LocationTotals outer = Loop(100, 0, 1, 10, 200);
  outer.location.loop->further_parts = {{1000, 1100}};
  EXPECT_EQ(CpuNs({outer, Loop(1050, 1010, 3, 7)}), (Sums{17, 7}));
  EXPECT_EQ(CpuNs({outer, Loop(500, 490, 3, 7)}), (Sums{10, 7}));
  // The smaller one of two around it, whatever lies between the parts.
  EXPECT_EQ(CpuNs({outer, Loop(900, 0, 1, 5, 1200), Loop(1050, 1010, 3, 7)}), (Sums{17, 5, 7}));
}

TEST(InclusiveTimes, RingsOfParentsEnd) {
  EXPECT_EQ(CpuNs({Loop(1, 2, 1, 10), Loop(2, 1, 1, 20)}), (Sums{10, 20}));
  EXPECT_EQ(CpuNs({Loop(1, 1, 1, 10)}), (Sums{10}));
}

TEST(InclusiveTimes, PlacesOutsideLoopsKeepTheirOwn) {
  LocationTotals function;
  function.counts.cpu_ns = 4;
  EXPECT_EQ(CpuNs({function}), (Sums{4}));
}

}  // namespace
}  // namespace perfd::daemon
