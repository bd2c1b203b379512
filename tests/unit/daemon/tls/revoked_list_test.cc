#include "daemon/tls/revoked_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace perfd::daemon {
namespace {

using testing::HasSubstr;

Certificate Of(std::string serial, std::vector<std::string> uris) {
  return {.serial = std::move(serial), .uris = std::move(uris), .begins = {}, .ends = {}};
}

RevokedBy Find(absl::string_view text, const Certificate& certificate) {
  const auto list = RevokedList::Parse(text);
  EXPECT_TRUE(list.ok()) << list.status();
  return list.ok() ? list->Find(certificate) : RevokedBy::kNothing;
}

TEST(RevokedListTest, ASerialIsWrittenInManyWays) {
  const Certificate certificate = Of("3A0F", {"perfd://agent/node1"});
  for (const char* line : {"serial 3A0F", "serial=3A0F", "serial 3a:0f", "  serial\t003A0f # lost",
                           "# first\n\nserial 3A0F\r\n"})
    EXPECT_EQ(Find(line, certificate), RevokedBy::kSerial) << line;
  for (const char* line : {"serial 3A0", "serial A0F", "serial 3A0F0", "# serial 3A0F", ""})
    EXPECT_EQ(Find(line, certificate), RevokedBy::kNothing) << line;
  EXPECT_EQ(Find("serial 000", Of("0", {})), RevokedBy::kSerial);
}

TEST(RevokedListTest, ANameIsThatOfANodeOrAUser) {
  EXPECT_EQ(Find("name node1", Of("1", {"perfd://agent/node1"})), RevokedBy::kName);
  EXPECT_EQ(Find("name node1", Of("1", {"https://x", "perfd://user/node1"})), RevokedBy::kName);
  for (const char* uri : {"perfd://agent/node10", "perfd://agent/Node1", "perfd://other/node1",
                          "node1", "perfd://agent/node1/x"})
    EXPECT_EQ(Find("name node1", Of("1", {uri})), RevokedBy::kNothing) << uri;
  EXPECT_EQ(Find("name 3A", Of("3A", {"perfd://agent/x"})), RevokedBy::kNothing);
}

TEST(RevokedListTest, AWrongLineIsSaidAndNothingIsTaken) {
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"serial 1\nserail 2", "line 2: 'serail' begins no entry"},
           {"serial", "line 1: 'serial' is not an entry"},
           {"serial 1 2", "is not an entry"},
           {"serial 0x12", "'0x12' is not a serial"},
           {"serial :", "is not a serial"},
           {absl::StrCat("serial ", std::string(41, '1')), "more than 40 digits"},
           {"name a/b", "'a/b' is not the name"},
           {"name perfd://agent/x", "is not the name"},
           {absl::StrCat("name ", std::string(256, 'a')), "is not the name"},
           {"node1", "is not an entry"}}) {
    const auto list = RevokedList::Parse(text);
    EXPECT_EQ(list.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(list.status().message()), HasSubstr(why));
  }
  EXPECT_TRUE(RevokedList::Parse(absl::StrCat("serial ", std::string(40, '1'))).ok());
  EXPECT_TRUE(RevokedList::Parse(absl::StrCat("name ", std::string(255, 'a'))).ok());
}

TEST(RevokedListTest, TheFileIsReadWholeAndMustBeOurs) {
  EXPECT_EQ(RevokedList::Read("")->size(), 0u);
  const std::string path =
      (std::filesystem::temp_directory_path() / absl::StrCat("perfd-revoked-", ::getpid()))
          .string();
  EXPECT_EQ(RevokedList::Read(path).status().code(), absl::StatusCode::kNotFound);
  std::ofstream(path) << "serial 1\nname x\nserial 1\n";
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  const auto list = RevokedList::Read(path);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->size(), 2u);
  ASSERT_EQ(::chmod(path.c_str(), 0664), 0);
  EXPECT_THAT(std::string(RevokedList::Read(path).status().message()), HasSubstr("chmod go-w"));
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  std::ofstream(path) << "x\n";
  EXPECT_THAT(std::string(RevokedList::Read(path).status().message()),
              HasSubstr(absl::StrCat(path, ": line 1: ")));
  std::ofstream(path) << std::string(RevokedList::kMaxBytes + 1, '\n');
  EXPECT_THAT(std::string(RevokedList::Read(path).status().message()), HasSubstr("has more than"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace perfd::daemon
