#include "client/commands/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace perfd::client {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest()
      : folder_(fs::path(testing::TempDir()) / ("output_file_test" + std::to_string(getpid()))) {
    fs::create_directory(folder_);
  }
  ~OutputFileTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ / name; }
  static std::string Content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }

  const fs::path folder_;
};

TEST_F(OutputFileTest, WritesAllBytes) {
  const std::string bytes("a\0b\n", 4);
  EXPECT_TRUE(WriteOutputFile(Path("new"), bytes, IfThere::kKeep).ok());
  EXPECT_EQ(Content(Path("new")), bytes);
}

TEST_F(OutputFileTest, KeepsWhatIsThereUnlessForced) {
  ASSERT_TRUE(WriteOutputFile(Path("file"), "old, and longer", IfThere::kKeep).ok());
  const absl::Status refused = WriteOutputFile(Path("file"), "new", IfThere::kKeep);
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(refused.message(), HasSubstr("--force"));
  EXPECT_EQ(Content(Path("file")), "old, and longer");
  EXPECT_TRUE(WriteOutputFile(Path("file"), "new", IfThere::kReplace).ok());
  EXPECT_EQ(Content(Path("file")), "new");
}

TEST_F(OutputFileTest, SaysWhatIsWrongWithThePath) {
  const absl::Status nowhere = WriteOutputFile(Path("no/file"), "x", IfThere::kKeep);
  EXPECT_EQ(nowhere.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(nowhere.message(), HasSubstr("there is no directory '" + Path("no") + "'"));
  const absl::Status folder = WriteOutputFile(folder_, "x", IfThere::kReplace);
  EXPECT_EQ(folder.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(folder.message(), HasSubstr("is a directory"));
  ASSERT_TRUE(WriteOutputFile(Path("file"), "", IfThere::kKeep).ok());
  const absl::Status inside = WriteOutputFile(Path("file/x"), "x", IfThere::kKeep);
  EXPECT_EQ(inside.code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(OutputFileTest, DirectoriesWithoutRight) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  const absl::Status status = WriteOutputFile(Path("file"), "x", IfThere::kKeep);
  fs::permissions(folder_, fs::perms::owner_all);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(OutputFileTest, HalfAFileIsNotLeft) {
  // As on a full disk: this process may write 100 bytes to a file.
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {100, before.rlim_max};
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = WriteOutputFile(Path("big"), std::string(1000, 'x'), IfThere::kKeep);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, old_handler);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnknown);
  EXPECT_FALSE(fs::exists(Path("big")));
}

}  // namespace
}  // namespace perfd::client
