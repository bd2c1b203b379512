#include "core/spec/text.h"

#include <gtest/gtest.h>

namespace perfd {
namespace {

TEST(TextTest, AcceptsEveryLengthOfUtf8AtItsBounds) {
  for (const char* text : {"", "a", "\x7f", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF",
                           "\xEE\x80\x80", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    EXPECT_TRUE(IsValidUtf8(text)) << text;
}

TEST(TextTest, RefusesOverlongSurrogatesAndBrokenSequences) {
  for (const char* text :
       {"\x80", "\xC1\xBF", "\xC2", "\xC2\x41", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\xFF"})
    EXPECT_FALSE(IsValidUtf8(text));
}

TEST(TextTest, ControlCharactersAreNotPrintable) {
  EXPECT_TRUE(IsPrintable("Schleife \xC3\xA4"));
  EXPECT_FALSE(IsPrintable("a\nb"));
  EXPECT_FALSE(IsPrintable("\x1b[31m"));
  EXPECT_FALSE(IsPrintable("\x7f"));
}

TEST(TextTest, MessagesNeverCarryEscapesAndStayShort) {
  EXPECT_EQ(ForMessage("a\x1b[0m\xFFz"), "a?[0m?z");
  EXPECT_EQ(ForMessage(std::string(64, 'x')), std::string(64, 'x'));
  EXPECT_EQ(ForMessage(std::string(65, 'x')), std::string(64, 'x') + "...");
}

}  // namespace
}  // namespace perfd
