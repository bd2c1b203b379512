#include "client/render/text_style.h"

#include <gtest/gtest.h>

#include "client/render/text_table.h"

namespace perfd::client {
namespace {

TEST(TextStyleTest, NoEscapeOfAStrangerReachesTheTerminal) {
  EXPECT_EQ(Clean("a\x1b[2Jb\r\n\x7f"), "a?[2Jb???");
  EXPECT_EQ(Clean("\xC2\x9B"
                  "31m"),
            "?31m");  // C1 CSI
  EXPECT_EQ(Clean("\xC3\xA4"), "\xC3\xA4");
  EXPECT_EQ(Clean("main\xE2\x80\xAE(c.niam\xE2\x81\xA6\xD8\x9C"), "main?(c.niam??")
      << "marks that turn the text";
  EXPECT_EQ(Clean("\xE2\x82\xAC \xF0\x9F\x98\x80 \xFF"), "\xE2\x82\xAC \xF0\x9F\x98\x80 \xFF");
}

TEST(TextStyleTest, CutsByColumnsNotBytes) {
  EXPECT_EQ(Columns("\xC3\xA4"
                    "bc"),
            3u);
  EXPECT_EQ(CutEnd("\xC3\xA4"
                   "bcdef",
                   4),
            "\xC3\xA4"
            "b..");
  EXPECT_EQ(CutEnd("abcd", 4), "abcd");
  EXPECT_EQ(CutFront("abcdef", 4), "..ef");
  EXPECT_EQ(CutEnd("abcdef", 2), "ab");
  EXPECT_EQ(CutFront("abcdef", 1), "f");
}

TEST(TextStyleTest, BarsKeepTheirWidth) {
  for (const bool utf8 : {false, true}) {
    for (const double ratio : {-1.0, 0.0, 0.01, 0.37, 0.999, 1.0, 2.0})
      EXPECT_EQ(Columns(Bar({.utf8 = utf8}, ratio, 10)), 10u) << utf8 << ratio;
  }
  EXPECT_EQ(Bar({}, 0.5, 4), "##  ");
  EXPECT_EQ(Bar({.utf8 = true}, 0.5, 3), "█▌ ");
}

TEST(TextStyleTest, PaintsOnlyWithColor) {
  EXPECT_EQ(Painted({}, Paint::kRed, "x"), "x");
  EXPECT_EQ(Painted({.color = true}, Paint::kRed, "x"), "\x1b[31mx\x1b[0m");
}

TEST(TextStyleTest, Quantities) {
  EXPECT_EQ(Percent(0.4125), "41.2%");
  EXPECT_EQ(Seconds(0.00314), "0.0031");
  EXPECT_EQ(Seconds(12.345), "12.35");
  EXPECT_EQ(Bytes(999), "999 B");
  EXPECT_EQ(Bytes(12'000'000), "12.0 MB");
  EXPECT_EQ(UtcTime(0), "-");
  EXPECT_EQ(UtcTime(1'700'000'000'000'000'000), "2023-11-14 22:13:20 UTC");
  EXPECT_EQ(BaseName("/a/b.c"), "b.c");
  EXPECT_EQ(BaseName("b.c"), "b.c");
}

TEST(TextTableTest, ColumnsFitTheirWidestCell) {
  TextTable table({{"A"}, {"N", true}});
  table.Add({"long\x1b", "1"});
  table.Add({"x"});
  EXPECT_EQ(table.Render(), "  A      N\n  long?  1\n  x\n");
}

}  // namespace
}  // namespace perfd::client
