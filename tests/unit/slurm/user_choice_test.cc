extern "C" {
#include "deploy/slurm/user_choice.h"
}

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace {

using testing::HasSubstr;

TEST(UserChoiceTest, NothingGivenIsNoWishAndNoRemark) {
  const user_choice choice{};
  EXPECT_EQ(choice_preference(&choice), kNoPreference);
  EXPECT_EQ(choice_remark(&choice), nullptr);
}

TEST(UserChoiceTest, WithoutANameItIsTheSitesDefault) {
  for (const char* text : {static_cast<const char*>(nullptr), "", "(null)"}) {
    user_choice choice{};
    choice_ask(&choice, text);
    EXPECT_EQ(choice_preference(&choice), kPreferProfile);
    EXPECT_STREQ(choice.preset, "default");
    EXPECT_EQ(choice_remark(&choice), nullptr);
  }
}

TEST(UserChoiceTest, TheLastNameCounts) {
  user_choice choice{};
  choice_ask(&choice, "a-much-longer-name");
  choice_ask(&choice, "deep");
  EXPECT_EQ(choice_preference(&choice), kPreferProfile);
  EXPECT_STREQ(choice.preset, "deep");
}

TEST(UserChoiceTest, AGoodNameRepairsABadOneAndTheOtherWayRound) {
  user_choice choice{};
  choice_ask(&choice, "no good");
  EXPECT_EQ(choice_preference(&choice), kNoPreference);
  choice_ask(&choice, "deep");
  EXPECT_EQ(choice_preference(&choice), kPreferProfile);
  choice_ask(&choice, "no good");
  EXPECT_EQ(choice_preference(&choice), kNoPreference);
  EXPECT_STREQ(choice.preset, "");
}

TEST(UserChoiceTest, RefusingWinsInEitherOrderAndIsSaid) {
  for (const bool first : {true, false}) {
    user_choice choice{};
    if (first) choice_refuse(&choice);
    choice_ask(&choice, "deep");
    choice_refuse(&choice);
    EXPECT_EQ(choice_preference(&choice), kPreferNone);
    EXPECT_THAT(choice_remark(&choice), HasSubstr("not profiled"));
  }
}

TEST(UserChoiceTest, RefusingAloneNeedsNoRemark) {
  user_choice choice{};
  choice_refuse(&choice);
  EXPECT_EQ(choice_preference(&choice), kPreferNone);
  EXPECT_EQ(choice_remark(&choice), nullptr);
}

TEST(UserChoiceTest, ANameHasAtMost64Characters) {
  user_choice choice{};
  choice_ask(&choice, std::string(64, 'x').c_str());
  EXPECT_EQ(choice_preference(&choice), kPreferProfile);
  EXPECT_EQ(std::string(choice.preset).size(), 64u);
  choice_ask(&choice, std::string(65, 'x').c_str());
  EXPECT_EQ(choice_preference(&choice), kNoPreference);
  choice_ask(&choice, std::string(1 << 20, 'x').c_str());
  EXPECT_EQ(choice_preference(&choice), kNoPreference);
  EXPECT_THAT(choice_remark(&choice), HasSubstr("ignored"));
}

// It becomes a variable of root's Prolog.
TEST(UserChoiceTest, ANameIsLettersDigitsUnderscoreHyphenAndDot) {
  for (const char* text : {"a", "Z9", "_", "v1.2-long_name", "-"}) {
    user_choice choice{};
    choice_ask(&choice, text);
    EXPECT_EQ(choice_preference(&choice), kPreferProfile) << text;
  }
  for (const char* text : {"a b", "a\nb", "a=b", "$(id)", "a/b", "\xc3\xa4", "a;b", "a\"", " ", "@",
                           "[", "`", "{", ":"}) {
    user_choice choice{};
    choice_ask(&choice, text);
    EXPECT_EQ(choice_preference(&choice), kNoPreference) << text;
  }
}

}  // namespace
