#include "core/service/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/service/account.h"
#include "core/spec/yaml_tree.h"

namespace perfd {
namespace {

using ::testing::HasSubstr;

class ConfigFileTest : public testing::Test {
 protected:
  ConfigFileTest()
      : path_(testing::TempDir() + "config_file_test_" + std::to_string(::getpid()) + ".yaml") {}
  ~ConfigFileTest() override { std::filesystem::remove(path_); }
  void Write(const std::string& text, mode_t mode = 0644) {
    std::ofstream(path_) << text;
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
  }
  absl::Status Read() {
    return ReadConfigFile(path_, {"TestConfig", {{.path = "name", .field = &name_}}});
  }

  const std::string path_;
  std::string name_ = "before";
};

TEST_F(ConfigFileTest, ReadsTheFile) {
  Write("name: after\n");
  ASSERT_TRUE(Read().ok());
  EXPECT_EQ(name_, "after");
}

TEST_F(ConfigFileTest, EveryLineOfAnErrorNamesTheFile) {
  Write("nam: x\nnmae: y\n");
  EXPECT_EQ(Read().message(),
            path_ + ": line 1, column 1: unknown key 'nam'; did you mean 'name'?\n" + path_ +
                ": line 2, column 1: unknown key 'nmae'; did you mean 'name'?");
}

TEST_F(ConfigFileTest, AFileThatOthersMayChangeIsRefused) {
  for (const mode_t mode : {0664u, 0646u, 0666u}) {
    Write("name: after\n", mode);
    EXPECT_EQ(Read().code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(std::string(Read().message()), HasSubstr("chmod go-w"));
  }
  if (::geteuid() != 0) return;
  Write("name: after\n");
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_THAT(std::string(Read().message()), HasSubstr("belongs to uid 65534"));
}

TEST_F(ConfigFileTest, OtherThingsThanFilesAreRefused) {
  EXPECT_EQ(Read().code(), absl::StatusCode::kNotFound);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(std::string(Read().message()), HasSubstr("not a regular file"));  // and does not wait
}

TEST_F(ConfigFileTest, TheSizeIsBounded) {
  const std::string key = "name: a\n#";
  Write(key + std::string(kMaxYamlBytes - key.size(), 'x'));
  EXPECT_TRUE(Read().ok());
  Write(key + std::string(kMaxYamlBytes - key.size() + 1, 'x'));
  EXPECT_EQ(Read().code(), absl::StatusCode::kInvalidArgument);
}

TEST(AccountTest, ByNameOrNumber) {
  EXPECT_EQ(*UidOf("root"), 0u);
  EXPECT_EQ(*UidOf("4711"), 4711u);
  EXPECT_EQ(*UidOf("4294967294"), 4294967294u);
  EXPECT_FALSE(UidOf("4294967295").ok());
  EXPECT_THAT(std::string(UidOf("no-such-user-here").status().message()),
              HasSubstr("no-such-user-here"));
}

}  // namespace
}  // namespace perfd
