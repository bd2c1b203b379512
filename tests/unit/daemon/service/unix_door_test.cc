#include "daemon/service/doors/unix_door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace perfd::daemon {
namespace {

class UnixDoorTest : public testing::Test {
 protected:
  UnixDoorTest() {
    std::string name = (std::filesystem::temp_directory_path() / "perfd-door-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) folder_ = name;
    path_ = folder_ + "/run/perfd.sock";
  }
  ~UnixDoorTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  std::string path_;
};

TEST_F(UnixDoorTest, IsOpenToEveryoneInAFolderThatIsNot) {
  const auto door = UnixDoor::Open(path_);
  ASSERT_TRUE(door.ok()) << door.status();
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666u);
  ASSERT_EQ(::stat((folder_ + "/run").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0755u);
  EXPECT_TRUE((*door)->Checks()[0].ok);
}

TEST_F(UnixDoorTest, ALivingDaemonKeepsItsSocket) {
  const auto first = UnixDoor::Open(path_);
  ASSERT_TRUE(first.ok());
  const auto second = UnixDoor::Open(path_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(UnixDoorTest, AfterStopNobodyListensAndTheNextOnesSocketIsLeftAlone) {
  auto first = *UnixDoor::Open(path_);
  ASSERT_TRUE(first->Serve([](UniqueFd, uint32_t) {}).ok());
  first->Stop();
  EXPECT_FALSE(std::filesystem::exists(path_));
  const auto second = UnixDoor::Open(path_);
  ASSERT_TRUE(second.ok()) << second.status();
  first->Stop();
  first.reset();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(UnixDoorTest, AStaleSocketIsReplaced) {
  std::filesystem::create_directory(folder_ + "/run");
  {
    // Bound and closed without unlink, as a killed daemon leaves it.
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    ASSERT_EQ(
        ::bind(fd.get(), static_cast<sockaddr*>(static_cast<void*>(&address)), sizeof(address)), 0);
  }
  EXPECT_TRUE(UnixDoor::Open(path_).ok());
}

TEST_F(UnixDoorTest, AFileThatIsNoSocketIsLeftAlone) {
  std::filesystem::create_directory(folder_ + "/run");
  std::ofstream(path_) << "precious";
  EXPECT_EQ(UnixDoor::Open(path_).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(std::filesystem::file_size(path_), 8u);
}

TEST_F(UnixDoorTest, LongPathsAreRefused) {
  EXPECT_EQ(UnixDoor::Open("/" + std::string(107, 'x')).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(UnixDoor::Open("").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace perfd::daemon
