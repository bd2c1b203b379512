// tests/unit/procfs/fake_groups.h - a /proc and mounts of control groups of our own making, with process 7 in them.
#ifndef TESTS_UNIT_PROCFS_FAKE_GROUPS_H_
#define TESTS_UNIT_PROCFS_FAKE_GROUPS_H_

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/procfs/procfs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace perfd::agent {

// Version 1 of one controller at v1/job/step, version 2 at v2/a/b.
class FakeGroups : public ::testing::Test {
 protected:
  explicit FakeGroups(std::string controller) : controller_(std::move(controller)) {}

  void SetUp() override {
    root_ = absl::StrCat(::testing::TempDir(), "/fake-groups-", controller_, "-", getpid());
    Write("proc/self/mountinfo",
          absl::StrCat("35 31 0:32 / ", root_, "/v1 rw - cgroup cgroup rw,", controller_, "\n",
                       "41 31 0:38 / ", root_, "/v2 rw - cgroup2 cgroup2 rw\n"));
    Write("proc/7/cgroup", absl::StrCat("4:", controller_, ":/job/step\n0::/a/b\n"));
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = absl::StrCat(root_, "/", file);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  ProcFs procfs() const { return ProcFs(root_ + "/proc"); }

 private:
  std::string controller_, root_;
};

}  // namespace perfd::agent

#endif  // TESTS_UNIT_PROCFS_FAKE_GROUPS_H_
