#include "agent/reader/confine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "tests/unit/reader/confined_test.h"

namespace perfd::agent {
namespace {

using ConfineTest = ConfinedTest;

// Runs `check` in a child, confined by `confine`; its result is the wait status.
template <typename Check>
int InConfinedChild(Check check, absl::Status (*confine)(const ConfineLimits&) = Confine) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!confine({}).ok()) ::_exit(99);
    ::_exit(check() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

bool Refused(long result) {
  return result == -1 && errno == EPERM;
}

TEST_F(ConfineTest, NothingCanBeOpenedOrConnected) {
  EXPECT_EQ(InConfinedChild([] { return Refused(::open("/etc/passwd", O_RDONLY)); }), 0);
  EXPECT_EQ(InConfinedChild([] { return Refused(::syscall(SYS_openat2, AT_FDCWD, "/", 0, 0)); }),
            0);
  EXPECT_EQ(InConfinedChild([] { return Refused(::socket(AF_INET, SOCK_STREAM, 0)); }), 0);
  EXPECT_EQ(InConfinedChild([] { return Refused(::socket(AF_UNIX, SOCK_STREAM, 0)); }), 0);
  EXPECT_EQ(InConfinedChild([] { return Refused(::unlink("/tmp/nothing")); }), 0);
}

TEST_F(ConfineTest, NoProcessCanBeTouched) {
  EXPECT_EQ(InConfinedChild([] { return Refused(::syscall(SYS_fork)); }), 0);
  EXPECT_EQ(InConfinedChild([] { return Refused(::kill(::getppid(), 0)); }), 0);
  EXPECT_EQ(InConfinedChild([] { return Refused(::syscall(SYS_setuid, 0)); }), 0);
  const int status = InConfinedChild([] { return ::execl("/bin/true", "true", nullptr) == 0; });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGSYS);
}

TEST_F(ConfineTest, MemoryIsNeverExecutable) {
  const auto map = [](int protection) {
    return ::mmap(nullptr, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  };
  EXPECT_EQ(
      InConfinedChild([map] { return map(PROT_READ | PROT_EXEC) == MAP_FAILED && errno == EPERM; }),
      0);
  EXPECT_EQ(InConfinedChild([map] {
              void* page = map(PROT_READ | PROT_WRITE);
              return page != MAP_FAILED && Refused(::mprotect(page, 4096, PROT_READ | PROT_EXEC));
            }),
            0);
}

TEST_F(ConfineTest, MemoryIsBounded) {
  EXPECT_EQ(InConfinedChild([] {
              return ::mmap(nullptr, size_t{5} << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                            0) == MAP_FAILED &&
                     errno == ENOMEM;
            }),
            0);
}

TEST_F(ConfineTest, ForOpeningFilesCanBeReadAndNothingElse) {
  const auto opens = [](int flags) {
    const int fd = ::open("/proc/self/stat", flags | O_CLOEXEC);
    return fd >= 0 && ::fcntl(fd, F_DUPFD_CLOEXEC, 0) >= 0;
  };
  EXPECT_EQ(InConfinedChild([&] { return opens(O_RDONLY) && opens(O_PATH); }, ConfineForOpening),
            0);
  EXPECT_EQ(
      InConfinedChild([] { return Refused(::open("/dev/null", O_WRONLY)); }, ConfineForOpening), 0);
  EXPECT_EQ(InConfinedChild([] { return Refused(::open("/dev/null", O_RDWR)); }, ConfineForOpening),
            0);
  EXPECT_EQ(
      InConfinedChild([] { return Refused(::open("/tmp/perfd-none", O_RDONLY | O_CREAT, 0600)); },
                      ConfineForOpening),
      0);
  EXPECT_EQ(
      InConfinedChild([] { return Refused(::socket(AF_UNIX, SOCK_STREAM, 0)); }, ConfineForOpening),
      0);
  EXPECT_EQ(InConfinedChild([] { return Refused(::syscall(SYS_fork)); }, ConfineForOpening), 0);
  EXPECT_EQ(InConfinedChild([] { return Refused(::syscall(SYS_setuid, 0)); }, ConfineForOpening),
            0);
  EXPECT_TRUE(WIFSIGNALED(InConfinedChild([] { return ::execl("/bin/true", "true", nullptr) == 0; },
                                          ConfineForOpening)));
  EXPECT_EQ(
      InConfinedChild([&] { return Confine({}).ok() && !opens(O_RDONLY); }, ConfineForOpening), 0);
}

TEST_F(ConfineTest, WhatReadingNeedsStillWorks) {
  const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  EXPECT_EQ(InConfinedChild([file] {
              char byte = 0;
              void* map = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, file, 0);
              return ::pread(file, &byte, 1, 0) == 1 && byte == 0x7F && map != MAP_FAILED;
            }),
            0);
  ::close(file);
}

}  // namespace
}  // namespace perfd::agent
