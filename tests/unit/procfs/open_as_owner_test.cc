#include "agent/procfs/open_as_owner.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace perfd::agent {
namespace {

constexpr uid_t kOther = 65534;

bool RetainOnly(uint32_t capabilities) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{capabilities, capabilities, 0},
                                                                 {0, 0, 0}};
  return ::syscall(SYS_capset, &header, sets) == 0;
}

// The exit code of a child that has only these capabilities; 99: they could not be taken away.
int InChildWith(uint32_t capabilities, const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(RetainOnly(capabilities) ? body() : 99);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

class OpenAsOwnerTest : public testing::Test {
 protected:
  OpenAsOwnerTest() : path_("/tmp/open_as_owner_test_" + std::to_string(::getpid())) {
    if (::geteuid() != 0) return;
    const UniqueFd file(::open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
    prepared_ = file.valid() && ::fchown(file.get(), kOther, kOther) == 0;
  }
  ~OpenAsOwnerTest() override { std::remove(path_.c_str()); }

  const std::string path_;
  bool prepared_ = false;
};

TEST_F(OpenAsOwnerTest, TheRightToBecomeTheOwnerIsEnough) {
  if (!prepared_) GTEST_SKIP() << "needs root to make another user's file";
  EXPECT_EQ(InChildWith(1U << CAP_SETUID,
                        [this] {
                          if (::open(path_.c_str(), O_RDWR | O_CLOEXEC) >= 0)
                            return 1;  // the test tests nothing
                          if (!OpenAsOwner(path_, O_RDWR | O_CLOEXEC).valid()) return 2;
                          return ::open(path_.c_str(), O_RDWR | O_CLOEXEC) >= 0
                                     ? 3
                                     : 0;  // we are ourselves again
                        }),
            0);
}

TEST_F(OpenAsOwnerTest, WithoutItTheRefusalStands) {
  if (!prepared_) GTEST_SKIP() << "needs root to make another user's file";
  EXPECT_EQ(InChildWith(0,
                        [this] {
                          errno = 0;
                          if (OpenAsOwner(path_, O_RDWR | O_CLOEXEC).valid()) return 1;
                          return errno == EACCES ? 0 : 2;
                        }),
            0);
}

// A tracer must still die with its agent afterwards (hazard: commit_creds clears the signal).
TEST_F(OpenAsOwnerTest, TheDeathSignalAndDumpabilityStay) {
  if (!prepared_) GTEST_SKIP() << "needs root to make another user's file";
  EXPECT_EQ(InChildWith(1U << CAP_SETUID,
                        [this] {
                          ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                          if (!OpenAsOwner(path_, O_RDWR | O_CLOEXEC).valid()) return 1;
                          int signal = 0;
                          ::prctl(PR_GET_PDEATHSIG, &signal);
                          if (signal != SIGKILL) return 2;
                          return ::prctl(PR_GET_DUMPABLE) == 1 ? 0 : 3;
                        }),
            0);
}

// The flag belongs to all threads: one that comes in while another is the owner must not keep it cleared.
TEST_F(OpenAsOwnerTest, ManyThreadsLeaveTheProcessDumpable) {
  if (!prepared_) GTEST_SKIP() << "needs root to make another user's file";
  EXPECT_EQ(InChildWith(1U << CAP_SETUID,
                        [this] {
                          std::atomic<int> failed = 0;
                          const auto open_often = [&] {
                            for (int i = 0; i < 2000; ++i)
                              failed += OpenAsOwner(path_, O_RDWR | O_CLOEXEC).valid() ? 0 : 1;
                          };
                          std::vector<std::thread> threads;
                          for (int i = 0; i < 4; ++i) threads.emplace_back(open_often);
                          for (std::thread& thread : threads) thread.join();
                          if (failed != 0) return 1;
                          return ::prctl(PR_GET_DUMPABLE) == 1 ? 0 : 3;
                        }),
            0);
}

TEST_F(OpenAsOwnerTest, OtherErrorsAreNotRetried) {
  errno = 0;
  EXPECT_FALSE(OpenAsOwner(path_ + ".missing", O_RDONLY | O_CLOEXEC).valid());
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace perfd::agent
