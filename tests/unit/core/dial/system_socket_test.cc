#include "core/dial/system_socket.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace perfd {
namespace {

constexpr uint32_t kDaemon = 65533;

class SystemSocketTest : public testing::Test {
 protected:
  SystemSocketTest()
      : parent_("/tmp/system_socket_test_" + std::to_string(::getpid())),
        folder_(parent_ + "/perfd") {
    std::filesystem::create_directories(folder_);
    Set(parent_, 0755, ::geteuid());
    if (::geteuid() == 0) Set(folder_, 0755, kDaemon);
  }
  ~SystemSocketTest() override { std::filesystem::remove_all(parent_); }
  static void Set(const std::string& path, mode_t mode, uint32_t uid) {
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(::chown(path.c_str(), uid, uid), 0);
  }

  const std::string parent_;
  const std::string folder_;
};

TEST_F(SystemSocketTest, AFolderThatOnlyRootCouldHaveMade) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a folder away";
  EXPECT_TRUE(PlacedByRoot(folder_ + "/perfd.sock", kDaemon));
  EXPECT_FALSE(PlacedByRoot(folder_ + "/perfd.sock", kDaemon - 1)) << "another server";
}

TEST_F(SystemSocketTest, WhoeverMayChangeTheFoldersMayPutAServerThere) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a folder away";
  const std::string socket = folder_ + "/perfd.sock";
  for (const mode_t mode : {0775u, 0757u, 01777u}) {
    Set(folder_, mode, kDaemon);
    EXPECT_FALSE(PlacedByRoot(socket, kDaemon));
    Set(folder_, 0755, kDaemon);
    Set(parent_, mode, 0);
    EXPECT_FALSE(PlacedByRoot(socket, kDaemon));
    Set(parent_, 0755, 0);
  }
  Set(parent_, 0755, kDaemon);
  EXPECT_FALSE(PlacedByRoot(socket, kDaemon)) << "the daemon's own folder of folders";
  Set(parent_, 0755, 0);
  std::filesystem::create_directory_symlink(folder_, parent_ + "/link");
  EXPECT_FALSE(PlacedByRoot(parent_ + "/link/perfd.sock", kDaemon));
}

TEST_F(SystemSocketTest, OddPathsAreNobodys) {
  for (const char* path : {"", "/", "perfd.sock", "/perfd.sock", "a/perfd.sock"})
    EXPECT_FALSE(PlacedByRoot(path, 0)) << path;
}

}  // namespace
}  // namespace perfd
