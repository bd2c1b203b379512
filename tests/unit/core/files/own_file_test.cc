#include "core/files/own_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace perfd {
namespace {

TEST(OwnFileTest, AKeyIsForItsOwnerAlone) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/key-", ::getpid());
  std::ofstream(path) << "secret";
  for (const mode_t mode : {0640u, 0604u, 0620u, 0610u}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const absl::Status status = ReadKeyFile(path, 100).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("chmod 600 " + path));
    EXPECT_TRUE(ReadBoundedFile(path, 100).ok()) << "a certificate is for everybody";
  }
  for (const mode_t mode : {0600u, 0400u}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(ReadKeyFile(path, 6).value_or(""), "secret");
  }
  EXPECT_TRUE(absl::IsOutOfRange(ReadKeyFile(path, 5).status()));
  // The mode of a link says nothing; that of the file does.
  std::filesystem::create_symlink(path, path + ".link");
  EXPECT_TRUE(ReadKeyFile(path + ".link", 6).ok());
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_FALSE(ReadKeyFile(path + ".link", 6).ok());
  std::filesystem::remove(path + ".link");
  std::filesystem::remove(path);
  EXPECT_TRUE(absl::IsNotFound(ReadKeyFile(path, 6).status()));
}

TEST(OwnFileTest, ErrorsOfTheSystemHaveTheirCodes) {
  EXPECT_TRUE(absl::IsNotFound(FileStatus(ENOENT, "open", "/x")));
  EXPECT_TRUE(absl::IsPermissionDenied(FileStatus(EACCES, "open", "/x")));
  EXPECT_TRUE(absl::IsResourceExhausted(FileStatus(ENOSPC, "write", "/x")));
  EXPECT_TRUE(absl::IsResourceExhausted(FileStatus(EMFILE, "open", "/x")));
  EXPECT_TRUE(absl::IsUnavailable(FileStatus(EIO, "sync", "/x")));
  EXPECT_THAT(std::string(FileStatus(EIO, "sync", "/x").message()),
              ::testing::StartsWith("sync /x: "));
}

}  // namespace
}  // namespace perfd
