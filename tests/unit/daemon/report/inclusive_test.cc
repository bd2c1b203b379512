#include "daemon/report/inclusive.h"

#include <gtest/gtest.h>

namespace perfd {
namespace {

PlaceTotals Loop(uint64_t header, uint64_t parent, int32_t depth, uint64_t cpu_ns,
                 uint64_t high = 0) {
  PlaceTotals place;
  place.location.category = Category::kLoop;
  place.location.module_id = "aa";
  place.location.function_low = 0x100;
  place.location.loop.emplace();
  place.location.loop->header = header;
  place.location.loop->low = header;
  place.location.loop->high = high == 0 ? header + 1 : high;
  place.location.loop->parent_header = parent;
  place.location.loop->depth = depth;
  place.counts.cpu_ns = cpu_ns;
  return place;
}

using Sums = std::vector<uint64_t>;

TEST(InclusiveNs, FollowsTheChainOfParents) {
  EXPECT_EQ(
      InclusiveNs({Loop(1, 0, 1, 10), Loop(2, 1, 2, 20), Loop(3, 2, 3, 30), Loop(4, 1, 2, 5)}),
      (Sums{65, 50, 30, 5}));
}

TEST(InclusiveNs, OtherFunctionsAndModulesAreApart) {
  PlaceTotals function = Loop(2, 1, 2, 20);
  function.location.function_low = 0x200;
  PlaceTotals module = Loop(3, 1, 2, 30);
  module.location.module_id = "bb";
  EXPECT_EQ(InclusiveNs({Loop(1, 0, 1, 10), function, module}), (Sums{10, 20, 30}));
}

TEST(InclusiveNs, AParentWithoutSamplesIsBridgedByAddress) {
  // 1..100 holds 10..50 (never sampled), which holds 20.
  EXPECT_EQ(InclusiveNs({Loop(1, 0, 1, 10, 100), Loop(20, 10, 3, 7)}), (Sums{17, 7}));
  EXPECT_EQ(InclusiveNs({Loop(1, 0, 1, 10, 15), Loop(20, 10, 3, 7)}), (Sums{10, 7}));
}

TEST(InclusiveNs, RingsOfParentsEnd) {
  EXPECT_EQ(InclusiveNs({Loop(1, 2, 1, 10), Loop(2, 1, 1, 20)}), (Sums{10, 20}));
  EXPECT_EQ(InclusiveNs({Loop(1, 1, 1, 10)}), (Sums{10}));
}

TEST(InclusiveNs, PlacesOutsideLoopsKeepTheirOwn) {
  PlaceTotals function;
  function.counts.cpu_ns = 4;
  EXPECT_EQ(InclusiveNs({function}), (Sums{4}));
}

}  // namespace
}  // namespace perfd
