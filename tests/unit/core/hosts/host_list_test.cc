#include "core/hosts/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace perfd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Expand(const std::string& text) {
  const auto hosts = ExpandHostList(text);
  EXPECT_TRUE(hosts.ok()) << text << ": " << hosts.status();
  return hosts.value_or(std::vector<std::string>());
}

absl::StatusCode CodeOf(const std::string& text) {
  return ExpandHostList(text).status().code();
}

TEST(HostListTest, NamesAndRanges) {
  EXPECT_THAT(Expand("n1"), ElementsAre("n1"));
  EXPECT_THAT(Expand("n1,m2"), ElementsAre("n1", "m2"));
  EXPECT_THAT(Expand("n[1-4,7],m3"), ElementsAre("n1", "n2", "n3", "n4", "n7", "m3"));
  EXPECT_THAT(Expand("n[1-1]"), ElementsAre("n1"));
  EXPECT_THAT(Expand("login.site.example"), ElementsAre("login.site.example"));
  EXPECT_THAT(Expand(" n1 "), ElementsAre("n1"));
  EXPECT_THAT(Expand(""), ElementsAre());
}

TEST(HostListTest, LeadingZerosStay) {
  EXPECT_THAT(Expand("n[08-10]"), ElementsAre("n08", "n09", "n10"));
  EXPECT_THAT(Expand("n[098-101]"), ElementsAre("n098", "n099", "n100", "n101"));
  EXPECT_THAT(Expand("n[9-10]"), ElementsAre("n9", "n10"));
  EXPECT_THAT(Expand("n[9-010]"), ElementsAre("n9", "n10"));  // the width of the first counts
}

TEST(HostListTest, BracketsMultiplyAndMayHaveATail) {
  EXPECT_THAT(Expand("r[1-2]n[1-2]"), ElementsAre("r1n1", "r1n2", "r2n1", "r2n2"));
  EXPECT_THAT(Expand("n[1-2]-ib"), ElementsAre("n1-ib", "n2-ib"));
  EXPECT_THAT(Expand("[1-2]"), ElementsAre("1", "2"));
}

TEST(HostListTest, EachNameOnce) {
  EXPECT_THAT(Expand("n[1-3],n2,n1"), ElementsAre("n1", "n2", "n3"));
}

TEST(HostListTest, WhatMakesNoSenseIsRefused) {
  for (const char* text : {"n[1-2",  "n[",      "n]",     "n[]",           "n[a]", "n[1-]", "n[-1]",
                           "n[2-1]", "n[1--2]", "n 1",    "n1,,n2",        ",n1",  "n1,",   "n[1,]",
                           "n;rm",   "n[1-2]]", "n[[1]]", "n[9999999999]", "\x80", "n/1"}) {
    EXPECT_EQ(CodeOf(text), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_THAT(std::string(ExpandHostList("\x01\x1b[2J").status().message()),
              ::testing::Not(HasSubstr("\x1b")));
}

TEST(HostListTest, TheNumberOfHostsIsBounded) {
  EXPECT_EQ(Expand(absl::StrCat("n[1-", kMaxHosts, "]")).size(), kMaxHosts);
  EXPECT_EQ(CodeOf(absl::StrCat("n[0-", kMaxHosts, "]")), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CodeOf("n[0-999999999]"), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CodeOf("a[0-999]b[0-999]"), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CodeOf(absl::StrCat("n[1-", kMaxHosts, "],m")), absl::StatusCode::kResourceExhausted);
  // The same names again and again.
  std::string again = "n[0-9999]";
  for (int i = 0; i < 10; ++i) absl::StrAppend(&again, ",n[0-9999]");
  EXPECT_EQ(CodeOf(again), absl::StatusCode::kResourceExhausted);
}

TEST(HostListTest, TheLengthOfANameIsBounded) {
  EXPECT_EQ(Expand(std::string(kMaxHostBytes, 'n')).size(), 1u);
  EXPECT_EQ(CodeOf(std::string(kMaxHostBytes + 1, 'n')), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Expand(std::string(kMaxHostBytes - 1, 'n') + "[1]").size(), 1u);
  EXPECT_EQ(CodeOf(std::string(kMaxHostBytes, 'n') + "[1]"), absl::StatusCode::kInvalidArgument);
}

TEST(SomeHostsTest, NamesAFew) {
  EXPECT_EQ(SomeHosts({}), "");
  EXPECT_EQ(SomeHosts({"a", "b"}), "a, b");
  EXPECT_EQ(SomeHosts(*ExpandHostList("n[1-8]")), "n1, n2, n3, n4, n5, n6, n7, n8");
  EXPECT_EQ(SomeHosts(*ExpandHostList("n[1-20]")), "n1, n2, n3, n4, n5, n6, n7, n8 and 12 more");
}

}  // namespace
}  // namespace perfd
