#include "agent/binary/loop_lines.h"

#include <gtest/gtest.h>

#include <numeric>

namespace perfd::agent {
namespace {

// A function of 100 one-byte instructions at 0; `Row` gives the line from an address on.
class LoopLinesTest : public ::testing::Test {
 protected:
  LoopLinesTest() {
    lines_.files = {"", "main.c", "inline.h"};
    lines_.frames.push_back({"main", 0, 0, 0, 1, {{0, 100}}});
  }
  void Row(uint64_t address, int32_t line, uint32_t file = 1) {
    lines_.rows.push_back({address, file, line});
  }
  LoopSource Find(uint64_t low, uint64_t high, std::vector<uint64_t> latches) {
    std::vector<uint64_t> body(high - low);
    std::iota(body.begin(), body.end(), low);
    return LoopLineFinder(lines_).Find(body, latches);
  }

  FunctionLines lines_;
};

TEST_F(LoopLinesTest, RangeOfTheBody) {
  Row(0, 10);
  Row(20, 12);
  Row(30, 14);
  Row(39, 11);
  Row(40, 20);
  const LoopSource found = Find(20, 40, {39});
  EXPECT_EQ(found.range, (SourceRange{"main.c", 11, 14}));
  EXPECT_EQ(found.inlined_from, "");
}

TEST_F(LoopLinesTest, LineZeroIsSkipped) {
  Row(20, 0);
  Row(25, 12);
  Row(30, 0);
  EXPECT_EQ(Find(20, 40, {39}).range, (SourceRange{"main.c", 12, 12}));
}

TEST_F(LoopLinesTest, NothingKnown) {
  EXPECT_EQ(Find(20, 40, {39}).range, SourceRange{});
  Row(20, 0);
  EXPECT_EQ(Find(20, 40, {39}).range, SourceRange{});
}

// A call inlined into the body counts at the line of the call, whatever its own file.
TEST_F(LoopLinesTest, InlinedCallCountsAtItsCallSite) {
  lines_.frames.push_back({"helper", 0, 1, 13, 1, {{25, 38}}});
  Row(20, 11);
  Row(25, 500, 2);
  Row(38, 11);
  const LoopSource found = Find(20, 40, {39});
  EXPECT_EQ(found.range, (SourceRange{"main.c", 11, 13}));
  EXPECT_EQ(found.inlined_from, "");
}

// A loop inside an inlined function is that function's, even with one instruction of the caller in twenty.
TEST_F(LoopLinesTest, LoopOfAnInlinedFunction) {
  lines_.frames.push_back({"dot", 0, 1, 13, 3, {{20, 24}, {25, 40}}});
  Row(20, 7, 2);
  Row(24, 99);
  Row(25, 6, 2);
  const LoopSource found = Find(20, 40, {39});
  EXPECT_EQ(found.range, (SourceRange{"inline.h", 6, 7}));
  EXPECT_EQ(found.inlined_from, "dot");
}

// The comparison of an iterator is inlined, and so is the latch: the loop still is the caller's.
TEST_F(LoopLinesTest, LatchInASmallInlinedCall) {
  lines_.frames.push_back({"operator!=", 0, 1, 11, 1, {{38, 40}}});
  Row(20, 12);
  Row(38, 900, 2);
  const LoopSource found = Find(20, 40, {39});
  EXPECT_EQ(found.range, (SourceRange{"main.c", 11, 12}));
  EXPECT_EQ(found.inlined_from, "");
}

TEST_F(LoopLinesTest, EmptyRangesAreNothing) {
  lines_.frames.push_back({"nothing", 0, 1, 13, 1, {{25, 25}, {30, 20}}});
  Row(20, 11);
  EXPECT_EQ(Find(20, 40, {39}).range, (SourceRange{"main.c", 11, 11}));
}

TEST_F(LoopLinesTest, StrayLinesBeforeTheLoopAreLeftOut) {
  Row(20, 3);  // two of twenty: a tenth
  Row(22, 12);
  Row(39, 10);
  EXPECT_EQ(Find(20, 40, {39}).range, (SourceRange{"main.c", 10, 12}));
}

TEST_F(LoopLinesTest, BodyOfDoWhileComesBeforeItsLatch) {
  Row(20, 8);  // three of twenty: more than a tenth
  Row(23, 12);
  Row(39, 10);
  EXPECT_EQ(Find(20, 40, {39}).range, (SourceRange{"main.c", 8, 12}));
}

TEST_F(LoopLinesTest, OpeningLineOfTheFunctionIsNoLoop) {
  lines_.frames[0].declaration_line = 5;
  Row(20, 5);
  Row(30, 8);
  Row(39, 10);
  EXPECT_EQ(Find(20, 40, {39}).range, (SourceRange{"main.c", 8, 10}));
  lines_.frames[0].declaration_line = 10;  // all on one line
  EXPECT_EQ(Find(38, 40, {39}).range.last_line, 10);
}

}  // namespace
}  // namespace perfd::agent
