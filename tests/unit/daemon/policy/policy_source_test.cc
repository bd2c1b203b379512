#include "daemon/policy/policy_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace perfd::daemon {
namespace {

using ::testing::HasSubstr;

class PolicySourceTest : public testing::Test {
 protected:
  PolicySourceTest() {
    std::string name = (std::filesystem::temp_directory_path() / "perfd-policy-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) folder_ = name;
    path_ = folder_ + "/policy.yaml";
  }
  ~PolicySourceTest() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& text) { std::ofstream(path_) << text; }

  std::string folder_;
  std::string path_;
};

TEST_F(PolicySourceTest, NoFileIsNoPolicy) {
  PolicySource source("");
  EXPECT_TRUE(source.Reload().ok());
  EXPECT_EQ(source.Get(), nullptr);
  EXPECT_EQ(source.Describe(), "");
  EXPECT_TRUE(source.Check().ok);
}

TEST_F(PolicySourceTest, ABrokenFileKeepsTheOldPolicyAndSaysSo) {
  PolicySource source(path_);
  Write("every: 3\n");
  ASSERT_TRUE(source.Reload().ok());
  const auto before = source.Get();
  ASSERT_NE(before, nullptr);
  EXPECT_EQ(before->every, 3);
  Write("every: 3\nevry: 4\nquta: 1\n");
  const absl::Status broken = source.Reload();
  EXPECT_EQ(broken.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(broken.message()), HasSubstr("policy.yaml: line 2, column 1"));
  EXPECT_EQ(source.Get(), before);
  EXPECT_THAT(source.error(), HasSubstr("line 2"));
  EXPECT_FALSE(source.Check().ok);
  EXPECT_THAT(source.Check().found, HasSubstr("one of every 3 jobs"));
  EXPECT_THAT(source.Check().found, ::testing::Not(HasSubstr("\n")));
  Write("every: 5\n");
  ASSERT_TRUE(source.Reload().ok());
  EXPECT_EQ(source.Get()->every, 5);
  EXPECT_EQ(source.error(), "");
  EXPECT_EQ(before->every, 3);  // whoever had it keeps it
}

TEST_F(PolicySourceTest, AFileThatCannotBeReadKeepsTheOldPolicy) {
  PolicySource source(path_);
  EXPECT_EQ(source.Reload().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(source.Get(), nullptr);
  Write("every: 3\n");
  ASSERT_TRUE(source.Reload().ok());
  std::filesystem::remove(path_);
  EXPECT_FALSE(source.Reload().ok());
  EXPECT_NE(source.Get(), nullptr);
}

TEST_F(PolicySourceTest, WhatIsNoFileIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  PolicySource source(path_);
  EXPECT_EQ(source.Reload().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(source.error(), HasSubstr("is not a file"));
}

}  // namespace
}  // namespace perfd::daemon
