#include "core/spec/config_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace perfd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Settings {
  std::string name = "n";
  std::string folder = "/var";
  std::string level = "info";
  int64_t days = 90;
  bool open = false;
  std::vector<std::string> admins;
};

ConfigTable TableOf(Settings& s) {
  return {"TestConfig",
          {{.path = "name", .field = &s.name},
           {.path = "store.folder", .field = &s.folder, .form = ConfigForm::kPath},
           {.path = "store.days", .field = &s.days, .live = true, .low = 1, .high = 100},
           {.path = "log.level",
            .field = &s.level,
            .live = true,
            .form = ConfigForm::kChoice,
            .choices = "debug|info|warning"},
           {.path = "log.open", .field = &s.open},
           {.path = "access.admins", .field = &s.admins, .live = true}}};
}

std::string ErrorOf(const std::string& text) {
  Settings settings;
  const absl::Status status = ReadConfig(text, TableOf(settings));
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(ConfigTableTest, ReadsWhatIsGivenAndKeepsTheRest) {
  Settings s;
  ASSERT_TRUE(ReadConfig("apiVersion: perfd/v1\nkind: TestConfig\nstore:\n  days: 7\nlog: {level: "
                         "debug, open: yes}\n"
                         "access:\n  admins: [ann, \"bob\"]\n",
                         TableOf(s))
                  .ok());
  EXPECT_EQ(s.days, 7);
  EXPECT_EQ(s.level, "debug");
  EXPECT_TRUE(s.open);
  EXPECT_THAT(s.admins, ElementsAre("ann", "bob"));
  EXPECT_EQ(s.folder, "/var");
  EXPECT_EQ(s.name, "n");
}

TEST(ConfigTableTest, AnEmptyFileIsAllDefaults) {
  Settings s;
  EXPECT_TRUE(ReadConfig("", TableOf(s)).ok());
  EXPECT_TRUE(ReadConfig("# nothing yet\n", TableOf(s)).ok());
  EXPECT_TRUE(ReadConfig("store:\n#  days: 7\nlog:\n  level: info\n", TableOf(s)).ok());
  Settings fresh;
  EXPECT_EQ(FormatConfig(TableOf(s)), FormatConfig(TableOf(fresh)));
}

TEST(ConfigTableTest, ErrorsSayWhereAndWhatWasMeant) {
  EXPECT_EQ(ErrorOf("store:\n  dayz: 7\n"),
            "line 2, column 3: unknown key 'dayz' in store; did you mean 'days'?");
  EXPECT_EQ(ErrorOf("days: 7\n"),
            "line 1, column 1: unknown key 'days'; did you mean 'store.days'?");
  EXPECT_EQ(ErrorOf("stoer:\n  days: 7\n"),
            "line 1, column 1: unknown key 'stoer'; did you mean 'store'?");
  EXPECT_EQ(ErrorOf("store.days: 7\n"), "line 1, column 1: unknown key 'store.days'");
  EXPECT_EQ(ErrorOf("log:\n  level: inof\n"),
            "line 2, column 10: log.level: 'inof' is not one of debug, info, warning; did you mean "
            "'info'?");
  EXPECT_EQ(ErrorOf("store: {folder: var/lib}\n"),
            "line 1, column 17: store.folder: 'var/lib' is not an absolute path");
  EXPECT_EQ(ErrorOf("kind: Profile\n"),
            "line 1, column 7: kind: expected 'TestConfig', found 'Profile'");
  EXPECT_THAT(ErrorOf("apiVersion: perfd/v2\n"),
              HasSubstr("expected 'perfd/v1', found 'perfd/v2'"));
  EXPECT_EQ(ErrorOf("name: a\nname: b\n"),
            "line 2, column 1: duplicate key 'name'; first given in line 1");
  EXPECT_THAT(ErrorOf("store: {days: 7}\nstore: {days: 8}\n"), HasSubstr("duplicate key 'store'"));
  EXPECT_EQ(ErrorOf("name:\n"), "line 1, column 1: name has no value; give one or remove the key");
  EXPECT_EQ(ErrorOf("- name\n"), "line 1, column 1: expected keys such as `log:`");
}

TEST(ConfigTableTest, TypesAreStrict) {
  EXPECT_THAT(ErrorOf("store: {days: many}\n"), HasSubstr("'many' is not a whole number"));
  EXPECT_THAT(ErrorOf("store: {days: \"7\"}\n"),
              HasSubstr("expected a whole number, found text in quotes"));
  EXPECT_THAT(ErrorOf("store: 7\n"), HasSubstr("store: expected a map of keys"));
  EXPECT_THAT(ErrorOf("log: {open: perhaps}\n"), HasSubstr("log.open: expected true or false"));
  EXPECT_THAT(ErrorOf("log: {open: \"true\"}\n"), HasSubstr("log.open: expected true or false"));
  EXPECT_THAT(ErrorOf("access: {admins: ann}\n"), HasSubstr("expected a list such as [a, b]"));
  EXPECT_THAT(ErrorOf("access: {admins: [ann, [bob]]}\n"),
              HasSubstr("expected a single value, found a list"));
  EXPECT_THAT(ErrorOf("name: {a: b}\n"), HasSubstr("expected a single value, found a map of keys"));
  EXPECT_THAT(ErrorOf("name: \"a\\tb\"\n"), HasSubstr("control characters"));
  EXPECT_THAT(ErrorOf("name: &x a\n"), HasSubstr("anchors"));
}

TEST(ConfigTableTest, BoundsHoldAtTheEdge) {
  EXPECT_EQ(ErrorOf("store: {days: 1}\n"), "");
  EXPECT_EQ(ErrorOf("store: {days: 100}\n"), "");
  EXPECT_THAT(ErrorOf("store: {days: 0}\n"), HasSubstr("is out of range 1..100"));
  EXPECT_THAT(ErrorOf("store: {days: 101}\n"), HasSubstr("is out of range 1..100"));
  EXPECT_EQ(ErrorOf("name: " + std::string(kMaxConfigText, 'a')), "");
  EXPECT_THAT(ErrorOf("name: " + std::string(kMaxConfigText + 1, 'a')), HasSubstr("at most 4096"));
  std::string list = "access:\n  admins:\n";
  for (size_t i = 0; i < kMaxConfigTexts; ++i) absl::StrAppend(&list, "  - u", i, "\n");
  EXPECT_EQ(ErrorOf(list), "");
  EXPECT_THAT(ErrorOf(list + "  - one\n"), HasSubstr("has 257 entries; at most 256"));
}

TEST(ConfigTableTest, EveryErrorIsReported) {
  EXPECT_EQ(ErrorOf("nam: x\nstore: {days: 0, foldr: /x}\n"),
            "line 1, column 1: unknown key 'nam'; did you mean 'name'?\n"
            "line 2, column 15: store.days: 0 is out of range 1..100\n"
            "line 2, column 18: unknown key 'foldr' in store; did you mean 'folder'?");
}

TEST(ConfigTableTest, WhatIsPrintedReadsTheSame) {
  Settings s{.name = "quote \" and \\ and: colon # hash",
             .folder = "/a b",
             .level = "warning",
             .days = 1,
             .open = true,
             .admins = {"", "[x]", "yes"}};
  const std::string text = FormatConfig(TableOf(s));
  Settings back;
  ASSERT_TRUE(ReadConfig(text, TableOf(back)).ok()) << text;
  EXPECT_EQ(FormatConfig(TableOf(back)), text);
  EXPECT_EQ(back.name, s.name);
  EXPECT_EQ(back.admins, s.admins);
  EXPECT_THAT(text, HasSubstr("kind: TestConfig\nname: \"quote"));
}

TEST(ConfigTableTest, OnlyLiveKeysChangeInARunningProgram) {
  Settings running;
  Settings wanted{.name = "other", .level = "debug", .days = 3, .admins = {"ann"}};
  const ConfigChanges changes = AdoptLive(TableOf(wanted), TableOf(running));
  EXPECT_THAT(changes.taken, ElementsAre("store.days: 90 -> 3", "log.level: \"info\" -> \"debug\"",
                                         "access.admins: [] -> [\"ann\"]"));
  EXPECT_THAT(changes.refused, ElementsAre("name: \"n\" -> \"other\""));
  EXPECT_EQ(running.name, "n");
  EXPECT_EQ(running.days, 3);
  EXPECT_THAT(running.admins, ElementsAre("ann"));
  const ConfigChanges again = AdoptLive(TableOf(wanted), TableOf(running));
  EXPECT_THAT(again.taken, IsEmpty());
  EXPECT_EQ(again.refused.size(), 1u);  // said at every reload until it is true
}

}  // namespace
}  // namespace perfd
