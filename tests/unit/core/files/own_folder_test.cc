// A folder that is ours: who may stand above it, and what is believed of what is in it.
#include "core/files/own_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace perfd {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr uid_t kOther = 30001;

class OwnFolderTest : public testing::Test {
 protected:
  OwnFolderTest() {
    char pattern[] = "/tmp/own-folder-XXXXXX";
    top_ = ::mkdtemp(pattern);
  }
  ~OwnFolderTest() override { fs::remove_all(top_); }

  static void WriteFile(const std::string& path, const std::string& text, mode_t mode = 0600) {
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
  }
  static std::string Text(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static mode_t Mode(const std::string& path) {
    struct stat facts {};
    EXPECT_EQ(::lstat(path.c_str(), &facts), 0) << path;
    return facts.st_mode & 07777;
  }
  static bool GiveAway(const std::string& path) {
    return ::lchown(path.c_str(), kOther, kOther) == 0;
  }
  static std::string Refusal(const std::string& path) {
    const auto folder = OwnFolder::Make(path);
    EXPECT_EQ(folder.status().code(), absl::StatusCode::kPermissionDenied) << folder.status();
    return std::string(folder.status().message());
  }

  std::string top_;
};

TEST_F(OwnFolderTest, MakesWhatIsMissingForUsAlone) {
  const mode_t before = ::umask(022);
  const auto folder = OwnFolder::Make(top_ + "/a/b/c");
  ::umask(before);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(Mode(top_ + "/a/b/c"), 0700u);
  EXPECT_EQ(Mode(top_ + "/a/b"), 0755u);
  EXPECT_TRUE(OwnFolder::Open(top_ + "/a/./b//c/").ok());
  EXPECT_TRUE(absl::IsNotFound(OwnFolder::Open(top_ + "/a/none").status()));
  EXPECT_FALSE(fs::exists(top_ + "/a/none")) << "Open makes nothing";
  EXPECT_FALSE(OwnFolder::Make("").ok());
  WriteFile(top_ + "/file", "");
  EXPECT_FALSE(OwnFolder::Make(top_ + "/file").ok());
  EXPECT_FALSE(OwnFolder::Make(top_ + "/file/below").ok());
}

TEST_F(OwnFolderTest, AFolderThatOthersMayWriteIsRefusedWithTheLineThatMendsIt) {
  fs::create_directories(top_ + "/open/spool");
  for (const mode_t mode : {0770u, 0777u, 0702u}) {
    ASSERT_EQ(::chmod((top_ + "/open/spool").c_str(), mode), 0);
    EXPECT_THAT(Refusal(top_ + "/open/spool"), HasSubstr("chmod go-w " + top_ + "/open/spool"));
  }
  ASSERT_EQ(::chmod((top_ + "/open/spool").c_str(), 0755), 0);
  EXPECT_TRUE(OwnFolder::Make(top_ + "/open/spool").ok());
  // Sticky or not, others may put files into it.
  ASSERT_EQ(::chmod((top_ + "/open/spool").c_str(), 01777), 0);
  Refusal(top_ + "/open/spool");
}

TEST_F(OwnFolderTest, EveryFolderAboveIsLookedAt) {
  fs::create_directories(top_ + "/a/b/spool");
  for (const char* above : {"/a", "/a/b"}) {
    ASSERT_EQ(::chmod((top_ + above).c_str(), 0777), 0);
    EXPECT_THAT(Refusal(top_ + "/a/b/spool"), HasSubstr("chmod go-w " + top_ + above));
    ASSERT_EQ(::chmod((top_ + above).c_str(), 01777), 0);
    EXPECT_TRUE(OwnFolder::Make(top_ + "/a/b/spool").ok()) << "nobody else may rename what is ours";
    ASSERT_EQ(::chmod((top_ + above).c_str(), 0755), 0);
  }
}

TEST_F(OwnFolderTest, WhatBelongsToAnotherUserIsRefused) {
  fs::create_directories(top_ + "/theirs/spool");
  if (!GiveAway(top_ + "/theirs")) GTEST_SKIP() << "needs root to give a folder away";
  EXPECT_THAT(Refusal(top_ + "/theirs/spool"), HasSubstr("belongs to uid 30001"));
  // As anybody can do below /tmp before the agent begins.
  fs::create_directories(top_ + "/sticky/agent");
  ASSERT_EQ(::chmod((top_ + "/sticky").c_str(), 01777), 0);
  ASSERT_TRUE(GiveAway(top_ + "/sticky/agent"));
  ASSERT_EQ(::chmod((top_ + "/sticky/agent").c_str(), 0755), 0);
  EXPECT_THAT(Refusal(top_ + "/sticky/agent"), HasSubstr("belongs to uid 30001"));
  EXPECT_THAT(Refusal(top_ + "/sticky/agent/spool"), HasSubstr("belongs to uid 30001"));
}

TEST_F(OwnFolderTest, LinksAreFollowedWhenTheyAreOurs) {
  fs::create_directories(top_ + "/disk/spool");
  fs::create_directory_symlink(top_ + "/disk", top_ + "/absolute");
  fs::create_directory_symlink("disk/../disk", top_ + "/relative");
  EXPECT_TRUE(OwnFolder::Open(top_ + "/absolute/spool").ok());
  EXPECT_TRUE(OwnFolder::Open(top_ + "/relative/spool").ok());
  fs::create_directory_symlink(top_ + "/round", top_ + "/round");
  EXPECT_FALSE(OwnFolder::Open(top_ + "/round").ok());
  // What it leads to is looked at as well.
  ASSERT_EQ(::chmod((top_ + "/disk").c_str(), 0777), 0);
  EXPECT_THAT(Refusal(top_ + "/absolute/spool"), HasSubstr(top_ + "/disk can be written"));
  ASSERT_EQ(::chmod((top_ + "/disk").c_str(), 0755), 0);
  if (!GiveAway(top_ + "/absolute")) GTEST_SKIP() << "needs root to give a link away";
  EXPECT_THAT(Refusal(top_ + "/absolute/spool"), HasSubstr("belongs to uid 30001"));
}

TEST_F(OwnFolderTest, AnotherFolderInItsPlaceChangesNothing) {
  const auto folder = OwnFolder::Make(top_ + "/spool");
  ASSERT_TRUE(folder.ok());
  fs::rename(top_ + "/spool", top_ + "/away");
  fs::create_directory(top_ + "/spool");
  WriteFile(top_ + "/spool/planted", "theirs");
  EXPECT_TRUE(absl::IsNotFound(folder->Read("planted", 100).status()));
  ASSERT_TRUE(folder->Replace("mine", "text").ok());
  EXPECT_EQ(Text(top_ + "/away/mine"), "text");
  EXPECT_FALSE(fs::exists(top_ + "/spool/mine"));
}

TEST_F(OwnFolderTest, OnlyFilesOfOursThatNobodyElseMayWriteAreBelieved) {
  const auto folder = OwnFolder::Make(top_);
  ASSERT_TRUE(folder.ok());
  WriteFile(top_ + "/mine", "text", 0644);
  EXPECT_EQ(folder->Read("mine", 4).value_or(""), "text");
  EXPECT_TRUE(absl::IsOutOfRange(folder->Read("mine", 3).status()));
  for (const mode_t mode : {0620u, 0602u}) {
    ASSERT_EQ(::chmod((top_ + "/mine").c_str(), mode), 0);
    const absl::Status status = folder->Read("mine", 4).status();
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << mode;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("/mine can be written by others"), HasSubstr("not believed")));
    EXPECT_TRUE(absl::IsPermissionDenied(folder->OpenFile("mine").status()));
  }
  fs::create_symlink("/etc/hostname", top_ + "/link");
  EXPECT_TRUE(absl::IsPermissionDenied(folder->Read("link", 1000).status()));
  ASSERT_EQ(::mkfifo((top_ + "/pipe").c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(folder->Read("pipe", 1000).status()));
  EXPECT_EQ(Text(top_ + "/mine"), "text") << "it is kept";
  WriteFile(top_ + "/theirs", "text");
  if (!GiveAway(top_ + "/theirs")) GTEST_SKIP() << "needs root to give a file away";
  const absl::Status status = folder->Read("theirs", 4).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("belongs to uid 30001"));
  EXPECT_TRUE(absl::IsPermissionDenied(folder->OpenFile("theirs").status()));
}

TEST_F(OwnFolderTest, AFileIsReplacedAsAWhole) {
  const auto folder = OwnFolder::Make(top_);
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(folder->Replace("f", "one").ok());
  ASSERT_TRUE(folder->Replace("f", "two").ok());
  EXPECT_EQ(folder->Read("f", 10).value_or(""), "two");
  EXPECT_EQ(Mode(top_ + "/f"), 0600u);
  // What a writer that was killed left beside it, or somebody put there, is not written through.
  WriteFile(top_ + "/victim", "theirs");
  fs::create_symlink(top_ + "/victim", top_ + "/f.new");
  ASSERT_TRUE(folder->Replace("f", "three").ok());
  EXPECT_EQ(folder->Read("f", 10).value_or(""), "three");
  EXPECT_EQ(Text(top_ + "/victim"), "theirs");
  EXPECT_THAT(folder->Names().value_or(std::vector<std::string>()),
              UnorderedElementsAre("f", "victim"));
  EXPECT_TRUE(folder->Remove("f").ok());
  EXPECT_TRUE(folder->Remove("f").ok());
  EXPECT_TRUE(absl::IsNotFound(folder->Read("f", 10).status()));
}

TEST_F(OwnFolderTest, OneHoldsItAndOnlyAnEmptyOneGoes) {
  const auto folder = OwnFolder::Make(top_ + "/spool");
  ASSERT_TRUE(folder.ok());
  {
    const auto held = folder->Lock();
    ASSERT_TRUE(held.ok());
    EXPECT_TRUE(absl::IsFailedPrecondition(OwnFolder::Open(top_ + "/spool")->Lock().status()));
  }
  EXPECT_TRUE(folder->Lock().ok());
  ASSERT_TRUE(folder->Replace("f", "").ok());
  EXPECT_FALSE(folder->RemoveFolder().ok());
  ASSERT_TRUE(folder->Remove("f").ok());
  EXPECT_TRUE(folder->RemoveFolder().ok());
  EXPECT_FALSE(fs::exists(top_ + "/spool"));
}

}  // namespace
}  // namespace perfd
