#include "core/spec/units.h"

#include <gtest/gtest.h>

#include <random>

namespace perfd {
namespace {

TEST(UnitsTest, DurationsWithEveryUnit) {
  EXPECT_EQ(*ParseDuration("60s"), 60'000'000'000);
  EXPECT_EQ(*ParseDuration("1h30m"), 5'400'000'000'000);
  EXPECT_EQ(*ParseDuration("1.5h"), 5'400'000'000'000);
  EXPECT_EQ(*ParseDuration("20ms"), 20'000'000);
  EXPECT_EQ(*ParseDuration("7us"), 7'000);
  EXPECT_EQ(*ParseDuration("9ns"), 9);
  EXPECT_EQ(*ParseDuration("7d"), 604'800'000'000'000);
}

TEST(UnitsTest, BadDurationsAreRefused) {
  for (const char* text : {"", "60", "s", "60 s", "-1s", "1x", "1.s", ".5s", "0.5ns", "1e3s",
                           "999999999999999999d", "9999999999999999999s", "inf", "60s ", "0x10s"})
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  EXPECT_NE(ParseDuration("60").status().message().find("unit"), std::string::npos);
}

TEST(UnitsTest, DurationsUseTheLargestUnitThatDivides) {
  EXPECT_EQ(FormatDuration(0), "0s");
  EXPECT_EQ(FormatDuration(60'000'000'000), "1m");
  EXPECT_EQ(FormatDuration(90'000'000'000), "90s");
  EXPECT_EQ(FormatDuration(1'000'000'001), "1000000001ns");
}

TEST(UnitsTest, PercentagesRoundTripExactly) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> any(0, 1);
  for (int i = 0; i < 20000; ++i) {
    const double ratio = i < 2001 ? i / 2000.0 : any(random) * (i % 2 == 0 ? 1 : 1e-9);
    ASSERT_EQ(*ParsePercent(FormatPercent(ratio)), ratio) << FormatPercent(ratio);
  }
}

TEST(UnitsTest, PercentagesLookAsWritten) {
  EXPECT_EQ(FormatPercent(0.02), "2%");
  EXPECT_EQ(FormatPercent(0.005), "0.5%");
  EXPECT_EQ(FormatPercent(0.8), "80%");
  EXPECT_EQ(FormatPercent(1), "100%");
  EXPECT_EQ(FormatPercent(0), "0%");
  EXPECT_EQ(FormatPercent(0.125), "12.5%");
  EXPECT_EQ(FormatPercent(0.0001), "0.01%");
}

TEST(UnitsTest, BadPercentagesAreRefused) {
  for (const char* text : {"", "%", "2", "0.02", "-2%", "2 %", "nan%", "inf%", "2%%",
                           "1e9999999999%", "1e%", "0x2%", "two%"})
    EXPECT_FALSE(ParsePercent(text).ok()) << text;
}

TEST(UnitsTest, Frequencies) {
  EXPECT_EQ(*ParseFrequency("199Hz"), 199);
  EXPECT_EQ(*ParseFrequency("199 hz"), 199);
  EXPECT_EQ(*ParseFrequency("0.5kHz"), 500);
  EXPECT_EQ(*ParseFrequency("2147483647Hz"), 2147483647);
  for (const char* text : {"", "199", "Hz", "0.5Hz", "-1Hz", "2147483648Hz", "1MHz", "199Hz "})
    EXPECT_FALSE(ParseFrequency(text).ok()) << text;
}

TEST(UnitsTest, Integers) {
  EXPECT_EQ(*ParseInteger("0"), 0);
  EXPECT_EQ(*ParseInteger("-12"), -12);
  for (const char* text : {"", "-", "010", "1.0", "1e3", "0x10", " 1", "+1", "9999999999999999999"})
    EXPECT_FALSE(ParseInteger(text).ok()) << text;
}

TEST(UnitsTest, RanksRoundTrip) {
  for (const char* text : {"all", "0", "0-7,9", "3,1,2-2147483647"}) {
    const auto ranks = ParseRanks(text);
    ASSERT_TRUE(ranks.ok()) << text;
    EXPECT_EQ(FormatRanks(*ranks), text);
  }
}

TEST(UnitsTest, BadRanksAreRefused) {
  for (const char* text : {"", ",", "1-", "-1", "7-0", "a", "1,,2", "2147483648", "1-2-3", "0..7"})
    EXPECT_FALSE(ParseRanks(text).ok()) << text;
}

TEST(UnitsTest, AtMost1024RankRanges) {
  std::string text = "0";
  for (int i = 1; i < 1024; ++i) text += "," + std::to_string(i);
  EXPECT_TRUE(ParseRanks(text).ok());
  EXPECT_FALSE(ParseRanks(text + ",1024").ok());
}

}  // namespace
}  // namespace perfd
