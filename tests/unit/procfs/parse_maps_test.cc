#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/procfs/procfs.h"

namespace perfd::agent {
namespace {

MapEntry One(const std::string& line) {
  const auto entries = ParseMaps(line);
  EXPECT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(entries->size(), 1u);
  return entries.ok() && !entries->empty() ? entries->front() : MapEntry{};
}

TEST(ParseMaps, ReadsEveryFieldOfAMappedFile) {
  const MapEntry entry = One(
      "55d0c0a1e000-55d0c0a2f000 r-xp 0000a000 fd:01 1311047                    /usr/bin/cat\n");
  const MapEntry expected{.start = 0x55d0c0a1e000,
                          .end = 0x55d0c0a2f000,
                          .readable = true,
                          .writable = false,
                          .executable = true,
                          .shared = false,
                          .file_offset = 0xa000,
                          .device_major = 0xfd,
                          .device_minor = 1,
                          .inode = 1311047,
                          .path = "/usr/bin/cat",
                          .deleted = false};
  EXPECT_EQ(entry, expected);
}

TEST(ParseMaps, ReadsAnonymousMemoryWithAndWithoutTrailingSpace) {
  EXPECT_EQ(One("1000-2000 rw-p 00000000 00:00 0 \n").path, "");
  EXPECT_EQ(One("1000-2000 rw-s 00000000 00:00 0").path, "");
  EXPECT_TRUE(One("1000-2000 rw-s 00000000 00:00 0").shared);
}

TEST(ParseMaps, KeepsNamesThatHoldSpacesAndSpecialNames) {
  EXPECT_EQ(One("1000-2000 r-xp 00000000 08:01 7   /a b/c  d\n").path, "/a b/c  d");
  EXPECT_EQ(One("1000-2000 r-xp 00000000 00:00 0   [vdso]\n").path, "[vdso]");
  EXPECT_EQ(One("1000-2000 rw-p 00000000 00:00 0   [anon:my heap]\n").path, "[anon:my heap]");
}

TEST(ParseMaps, TakesTheDeletedMarkOffTheName) {
  const MapEntry entry = One("1000-2000 r-xp 00000000 08:01 7   /tmp/app (deleted)\n");
  EXPECT_EQ(entry.path, "/tmp/app");
  EXPECT_TRUE(entry.deleted);
  EXPECT_TRUE(One("1000-2000 rwxs 00000000 00:05 9   /memfd:jit (deleted)\n").deleted);
}

TEST(ParseMaps, UndoesTheOneEscapeTheKernelWrites) {
  EXPECT_EQ(One("1000-2000 r-xp 00000000 08:01 7   /tmp/a\\012b\n").path, "/tmp/a\nb");
  EXPECT_EQ(One("1000-2000 r-xp 00000000 08:01 7   /tmp/a\\040b\n").path, "/tmp/a\\040b");
}

TEST(ParseMaps, AcceptsTheHighestAddress) {
  const MapEntry entry =
      One("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]\n");
  EXPECT_EQ(entry.end, 0xffffffffff601000u);
  EXPECT_FALSE(entry.readable);
}

TEST(ParseMaps, RefusesLinesThatAreNone) {
  for (const char* line :
       {"hello", "1000-2000", "1000-2000 r-xp", "1000-1000 r-xp 0 00:00 0",
        "2000-1000 r-xp 0 00:00 0", "1000-2000 rrxp 0 00:00 0", "1000-2000 r-xq 0 00:00 0",
        "1000-2000 r-xp 0 00:00 x", "10000000000000000-10000000000001000 r-xp 0 00:00 0",
        "1000-2000 r-xp 0 100000000:00 0", "-2000 r-xp 0 00:00 0", "1000-2000 r-xp 0 0000 0"}) {
    EXPECT_FALSE(ParseMaps(line).ok()) << line;
  }
}

TEST(ParseMaps, ReadsAllLinesOfTheOwnProcess) {
  const auto entries = ProcFs().Maps(::getpid());
  ASSERT_TRUE(entries.ok()) << entries.status();
  const auto self = reinterpret_cast<uint64_t>(&One);
  EXPECT_THAT(*entries, testing::Contains(testing::ResultOf(
                            [&](const MapEntry& e) {
                              return e.executable && e.start <= self && self < e.end &&
                                     e.path.find("procfs_test") != std::string::npos;
                            },
                            true)));
}

TEST(ParseMaps, NothingIsNoEntries) {
  EXPECT_EQ(ParseMaps("")->size(), 0u);
}

}  // namespace
}  // namespace perfd::agent
