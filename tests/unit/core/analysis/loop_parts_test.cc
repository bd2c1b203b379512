#include "core/analysis/loop_parts.h"

#include <gtest/gtest.h>

namespace perfd {
namespace {

ReportRow Loop(int32_t first_line, int32_t last_line, uint64_t function = 0x1000) {
  ReportRow row;
  row.location.module_id = "abc";
  row.location.function_low = function;
  row.location.source = {"a.c", first_line, last_line};
  row.location.loop = LoopFacts();
  return row;
}

TEST(LoopParts, TheHeaviestOfItsLinesIsTheMainOne) {
  const std::vector<LoopPart> parts =
      LoopParts({Loop(10, 12), Loop(30, 30), Loop(11, 11), Loop(12, 14)});
  EXPECT_EQ(LoopPartText(parts, 0), "main of 3 loops of its lines");
  EXPECT_EQ(LoopPartText(parts, 1), "");
  EXPECT_EQ(LoopPartText(parts, 2), "peeled, remainder or other part of #1");
  EXPECT_EQ(LoopPartText(parts, 3), "peeled, remainder or other part of #1");
  EXPECT_EQ(parts[3].loops, size_t{3});
}

TEST(LoopParts, AnotherFunctionParentOrInlinedFunctionIsAnotherLoop) {
  ReportRow inlined = Loop(10, 12), inner = Loop(10, 12), outer = Loop(10, 12);
  inlined.location.loop->inlined_from = "Helper";
  inner.location.loop->parent_header = 0x2000;
  outer.location.loop->innermost = false;
  const std::vector<LoopPart> parts =
      LoopParts({Loop(10, 12), Loop(10, 12, 0x5000), inlined, inner, outer});
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(LoopPartText(parts, i), "") << i;
}

TEST(LoopParts, WithoutLinesNothingIsKnown) {
  ReportRow function = Loop(10, 12);
  function.location.loop.reset();
  const std::vector<LoopPart> parts = LoopParts({Loop(0, 0), Loop(0, 0), function, function});
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(LoopPartText(parts, i), "") << i;
}

}  // namespace
}  // namespace perfd
