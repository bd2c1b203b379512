#include "agent/reader/arguments.h"

#include <gtest/gtest.h>

namespace perfd::agent {
namespace {

TEST(ArgumentsTest, RoundTrip) {
  const ModuleFile file{.pid = 7,
                        .uid = 4294967294U,
                        .gid = 100,
                        .path = "/a b/--c\n",
                        .device_major = 259,
                        .device_minor = 3,
                        .inode = UINT64_MAX,
                        .map_start = 0x400000,
                        .map_end = 0x7fffffffffff};
  const ReaderArguments arguments{file, 123, ModuleDetail::kNames};
  const auto parsed = ParseArguments(FormatArguments(arguments));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(FormatArguments(*parsed), FormatArguments(arguments));
  EXPECT_EQ(parsed->detail, ModuleDetail::kNames);
  EXPECT_EQ(parsed->file.path, file.path);
  EXPECT_EQ(parsed->file.inode, UINT64_MAX);
  EXPECT_EQ(parsed->file.uid, file.uid);
  EXPECT_EQ(parsed->memory_limit_bytes, 123U);
}

TEST(ArgumentsTest, Refusals) {
  std::vector<std::string> words = FormatArguments(ReaderArguments{});
  EXPECT_TRUE(ParseArguments(words).ok());
  words[0] = "2147483648";
  EXPECT_EQ(ParseArguments(words).status().code(), absl::StatusCode::kInvalidArgument);
  words[0] = "-1";
  EXPECT_FALSE(ParseArguments(words).ok());
  words[0] = "1";
  EXPECT_TRUE(ParseArguments(words).ok());
  words[9] = "2";
  EXPECT_FALSE(ParseArguments(words).ok()) << "lines: 0 or 1";
  words.pop_back();
  EXPECT_FALSE(ParseArguments(words).ok());
  EXPECT_FALSE(ParseArguments({}).ok());
}

}  // namespace
}  // namespace perfd::agent
