#include "agent/anonymous/perf_map.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace perfd::agent {
namespace {

std::string NameAt(const PerfMap& map, uint64_t address) {
  const PerfMap::Symbol* symbol = map.At(address);
  return symbol == nullptr ? "-" : symbol->name;
}

TEST(PerfMapTest, NamesHoldSpacesAndNumbersMayHaveAPrefix) {
  const PerfMap map = PerfMap::Parse(
      "7f0000001000 40 LazyCompile:~step /a b.js:3\n"
      "0x7f0000002000 0x10 other\r\n");
  EXPECT_EQ(NameAt(map, 0x7f0000001000), "LazyCompile:~step /a b.js:3");
  EXPECT_EQ(NameAt(map, 0x7f000000103f), "LazyCompile:~step /a b.js:3");
  EXPECT_EQ(NameAt(map, 0x7f0000001040), "-");
  EXPECT_EQ(NameAt(map, 0x7f0000000fff), "-");
  EXPECT_EQ(NameAt(map, 0x7f0000002005), "other");
}

TEST(PerfMapTest, WhatIsNoLineOfAMapIsSkipped) {
  const PerfMap map = PerfMap::Parse(
      "\n \nhello world again\n1000 10\n1000 10 \n1000 0 empty\n-1000 10 sign\n"
      "ffffffffffffffff 10 beyond\n1 ffffffffffffffff most\n10000000000000000 1 long\n"
      "2000 10 good\n3000 10 being written");
  EXPECT_EQ(map.symbols().size(), 1u);
  EXPECT_EQ(NameAt(map, 0x2000), "good");
}

TEST(PerfMapTest, LaterLinesAreTrueOfTheSameMemory) {
  const PerfMap map =
      PerfMap::Parse("1000 100 old\n1200 100 kept\n1040 20 within\n10f0 120 over\n");
  EXPECT_EQ(NameAt(map, 0x103f), "old");
  EXPECT_EQ(NameAt(map, 0x1040), "within");
  EXPECT_EQ(NameAt(map, 0x1060), "old");
  EXPECT_EQ(NameAt(map, 0x10ef), "old");
  EXPECT_EQ(NameAt(map, 0x10f0), "over");
  EXPECT_EQ(NameAt(map, 0x120f), "over");
  EXPECT_EQ(NameAt(map, 0x1210), "kept");
}

TEST(PerfMapTest, IsBounded) {
  std::string text = absl::StrCat("10 1 ", std::string(5000, 'n'), "\n");
  for (size_t i = 0; i < PerfMap::kMaxSymbols + 10; ++i)
    absl::StrAppend(&text, absl::Hex(0x1000 + 16 * i), " 8 f", i, "\n");
  const PerfMap map = PerfMap::Parse(text);
  EXPECT_LE(map.symbols().size(), PerfMap::kMaxSymbols);
  EXPECT_EQ(NameAt(map, 0x10).size(), PerfMap::kMaxNameBytes);
  EXPECT_EQ(NameAt(map, 0x1000), "f0");
}

}  // namespace
}  // namespace perfd::agent
