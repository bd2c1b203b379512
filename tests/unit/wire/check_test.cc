#include "core/wire/check/check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace perfd::wire {
namespace {

TEST(CleanText, KeepsWellFormedSequences) {
  for (const char* text : {"", "abc", "é", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(CleanText(text), text);
  }
}

TEST(CleanText, ReplacesEachBadByte) {
  EXPECT_EQ(CleanText("\x80"), "?");
  EXPECT_EQ(CleanText("\xC1\xBF"), "??");            // overlong
  EXPECT_EQ(CleanText("\xE0\x9F\xBF"), "???");       // overlong
  EXPECT_EQ(CleanText("\xED\xA0\x80"), "???");       // surrogate
  EXPECT_EQ(CleanText("\xF4\x90\x80\x80"), "????");  // above U+10FFFF
  EXPECT_EQ(CleanText("a\xC3"), "a?");               // cut short
  EXPECT_EQ(CleanText("\xC3z"), "?z");
}

TEST(CleanText, CutsAtTheLimitBetweenCharacters) {
  EXPECT_EQ(CleanText(std::string(kMaxTextBytes, 'x')).size(), kMaxTextBytes);
  EXPECT_EQ(CleanText(std::string(kMaxTextBytes + 1, 'x')).size(), kMaxTextBytes);
  EXPECT_EQ(CleanText(std::string(kMaxTextBytes - 1, 'x') + "é").size(), kMaxTextBytes - 1);
}

TEST(Check, BoundsAreInclusive) {
  EXPECT_TRUE(CheckRange(1, 1, 2, "f").ok());
  EXPECT_TRUE(CheckRange(2, 1, 2, "f").ok());
  EXPECT_FALSE(CheckRange(0, 1, 2, "f").ok());
  EXPECT_FALSE(CheckRange(3, 1, 2, "f").ok());
  EXPECT_TRUE(CheckCount(5, 5, "f").ok());
  EXPECT_FALSE(CheckCount(6, 5, "f").ok());
  EXPECT_TRUE(CheckText("abc", "f", 3).ok());
  EXPECT_FALSE(CheckText("abcd", "f", 3).ok());
  EXPECT_TRUE(CheckTotal(kMaxTotal, "f").ok());
  EXPECT_FALSE(CheckTotal(kMaxTotal + 1, "f").ok());
  EXPECT_TRUE(CheckRatio(1, "f").ok());
  EXPECT_FALSE(CheckRatio(1.001, "f").ok());
}

TEST(Check, NumbersMustBeFinite) {
  EXPECT_FALSE(CheckNumber(std::nan(""), -1, 1, "f").ok());
  EXPECT_FALSE(CheckNumber(std::numeric_limits<double>::infinity(), -1, HUGE_VAL, "f").ok());
  EXPECT_FALSE(CheckRatio(-0.001, "f").ok());
}

TEST(Check, TheMessageNamesTheField) {
  EXPECT_EQ(CheckRange(7, 1, 2, "spec.x").message(), "spec.x: 7 is not in 1..2");
}

}  // namespace
}  // namespace perfd::wire
