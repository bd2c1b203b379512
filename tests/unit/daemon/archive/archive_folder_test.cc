#include "daemon/archive/archive_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/unit/daemon/archive/archive_fixture.h"

namespace perfd::daemon {
namespace {

using testing::ElementsAre;

constexpr int64_t kDay = int64_t{24} * 3600 * 1'000'000'000;
constexpr int64_t kNov22 = int64_t{1'763'769'600} * 1'000'000'000;  // date -ud 2025-11-22 +%s

class ArchiveFolderTest : public ArchiveFixture {
 protected:
  ArchiveFolder archive() const { return ArchiveFolder(folder_); }
  void PutDays(int count, size_t bytes = 10) const {
    for (int i = 0; i < count; ++i) {
      const std::string id = "p-0000" + std::to_string(10 + i);
      ASSERT_TRUE(archive().Write(id, kNov22 + i * kDay, std::string(bytes, 'x')).ok());
    }
  }
};

TEST_F(ArchiveFolderTest, DaysAreOfUtc) {
  EXPECT_EQ(ArchiveDay(kNov22), "2025/11/22");
  EXPECT_EQ(ArchiveDay(kNov22 - 1), "2025/11/21");
  EXPECT_EQ(ArchiveDay(0), "1970/01/01");
  EXPECT_EQ(ArchiveDay(-5), "1970/01/01");
}

TEST_F(ArchiveFolderTest, AFileIsWholeAndItsOwnersGroupMayReadIt) {
  ASSERT_TRUE(archive().Write("p-000042", kNov22, "text").ok());
  EXPECT_THAT(Files(), ElementsAre("2025/11/22/p-000042.json"));
  EXPECT_EQ(Read("2025/11/22/p-000042.json"), "text");
  struct stat info {};
  ASSERT_EQ(::stat((folder_ + "/2025/11/22/p-000042.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0007, 0u);  // whatever the umask
  ASSERT_EQ(::stat(folder_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0007, 0u);
  EXPECT_TRUE(archive().Has("p-000042", kNov22));
  EXPECT_FALSE(archive().Has("p-000042", kNov22 + kDay));
  EXPECT_FALSE(archive().Has("p-000043", kNov22));
  ASSERT_TRUE(archive().Write("p-000042", kNov22, "again").ok());  // late windows
  EXPECT_EQ(Read("2025/11/22/p-000042.json"), "again");
  EXPECT_THAT(Files(), ElementsAre("2025/11/22/p-000042.json"));
}

TEST_F(ArchiveFolderTest, WhatAKilledDaemonLeftIsReplaced) {
  Write("2025/11/22/.p-000042.new", "half");
  ASSERT_TRUE(archive().Write("p-000042", kNov22, "text").ok());
  EXPECT_THAT(Files(), ElementsAre("2025/11/22/p-000042.json"));
}

TEST_F(ArchiveFolderTest, WhatIsInTheWayIsAnErrorAndStays) {
  Write("2025", "a file");
  EXPECT_EQ(archive().Write("p-000042", kNov22, "text").code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Read("2025"), "a file");
  std::filesystem::remove(folder_ + "/2025");
  Write("2025/11/22/p-000042.json/x");
  EXPECT_FALSE(archive().Write("p-000042", kNov22, "text").ok());
  EXPECT_THAT(Files(), ElementsAre("2025/11/22/p-000042.json/x"));
  EXPECT_FALSE(ArchiveFolder("/proc/nowhere").Write("p-000042", kNov22, "text").ok());
}

TEST_F(ArchiveFolderTest, NothingGoesWithoutALimit) {
  PutDays(3);
  const ArchiveContents contents = archive().Sweep({}, kNov22 + 10000 * kDay);
  EXPECT_EQ(contents.files, 3u);
  EXPECT_EQ(contents.bytes, 30u);
  EXPECT_EQ(contents.deleted, 0u);
}

TEST_F(ArchiveFolderTest, TheOldestGoesFirstAndSlowly) {
  PutDays(3);
  // Days 22, 23, 24; on the 24th, one day is kept: the 23rd and the 24th.
  ArchiveContents contents = archive().Sweep({.days = 1, .max_bytes = 0}, kNov22 + 2 * kDay);
  EXPECT_EQ(contents.deleted, 1u);
  EXPECT_EQ(contents.files, 2u);
  EXPECT_EQ(archive().Sweep({.days = 1, .max_bytes = 0}, kNov22 + 2 * kDay).deleted, 0u);
  // A clock that has gone wild deletes one in sixteen and one, not everything.
  contents = archive().Sweep({.days = 1, .max_bytes = 0}, kNov22 + 20000 * kDay);
  EXPECT_EQ(contents.deleted, 1u);
  EXPECT_THAT(Files(), ElementsAre("2025/11/24/p-000012.json"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/2025/11/22"));
}

TEST_F(ArchiveFolderTest, NeverMoreThanItsRoom) {
  PutDays(5, 100);
  EXPECT_EQ(archive().Sweep({.days = 0, .max_bytes = 500}, kNov22).deleted, 0u);
  const ArchiveContents contents = archive().Sweep({.days = 0, .max_bytes = 250}, kNov22);
  EXPECT_EQ(contents.deleted, 3u);
  EXPECT_EQ(contents.bytes, 200u);
  EXPECT_THAT(Files(), ElementsAre("2025/11/25/p-000013.json", "2025/11/26/p-000014.json"));
}

TEST_F(ArchiveFolderTest, WhatIsNotOursIsNeitherCountedNorDeleted) {
  for (const char* file :
       {"notes.txt", "2025/11/22/p-000042.json.bak", "2025/11/22/other.json", "2025/11/22/p-.json",
        "2025/11/22/p-12x.json", "2025/xx/22/p-000001.json", "20255/11/22/p-000001.json",
        "2025/11/p-000001.json"})
    Write(file);
  Write("elsewhere/p-000007.json");
  std::filesystem::create_directories(folder_ + "/2025/12");
  std::filesystem::create_symlink(base_ + "/archive/elsewhere", folder_ + "/2025/12/01");
  std::filesystem::create_symlink("/etc/hostname", folder_ + "/2025/11/22/p-000043.json");
  const size_t before = Files().size();
  const ArchiveContents contents =
      archive().Sweep({.days = 1, .max_bytes = 1}, kNov22 + 10000 * kDay);
  EXPECT_EQ(contents.files, 0u);
  EXPECT_EQ(contents.deleted, 0u);
  EXPECT_EQ(Files().size(), before);
}

}  // namespace
}  // namespace perfd::daemon
