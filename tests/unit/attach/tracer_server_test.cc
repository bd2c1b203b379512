#include "agent/attach/tracer_server.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace perfd::agent {
namespace {

constexpr uid_t kNobody = 65534;
constexpr int kNoLimit = 77;
constexpr size_t kLaterBytes = 16 << 20;
constexpr size_t kMostBytes = size_t{1} << 30;

size_t MappedBytes() {
  size_t pages = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%zu", &pages) != 1) std::abort();
  std::fclose(file);
  return pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

// An ordinary user, who may lock what there is now and a little more. Never returns.
[[noreturn]] void BeTracerOfAUser() {
  rlimit locked{};
  if (::getrlimit(RLIMIT_MEMLOCK, &locked) != 0) ::_exit(2);
  locked.rlim_cur = MappedBytes() + (1 << 20);
  if (::geteuid() == 0) locked.rlim_max = locked.rlim_cur;
  if (locked.rlim_cur > locked.rlim_max) ::_exit(kNoLimit);
  if (::setrlimit(RLIMIT_MEMLOCK, &locked) != 0) ::_exit(kNoLimit);
  if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(3);
  if (!SetUpTracer().ok()) ::_exit(4);
  std::vector<char> later(kLaterBytes, 1);  // throws, and the process aborts
  ::_exit(later[kLaterBytes / 2] == 1 ? 0 : 5);
}

TEST(SetUpTracer, ALimitOfLockedMemoryDoesNotEndItLater) {
  if (MappedBytes() > kMostBytes) GTEST_SKIP() << "a sanitizer's memory cannot be locked";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) BeTracerOfAUser();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == kNoLimit) GTEST_SKIP() << "RLIMIT_MEMLOCK is below what is mapped";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace perfd::agent
