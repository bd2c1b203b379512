// The limit of a real control group, of version 1 or 2, where one may be made.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "agent/shadow/forking/cgroup_memory.h"
#include "tests/integration/shadow/payload_fixture.h"

namespace perfd::agent {
namespace {

// A real control group of version 1 or 2, with a process in it.
TEST(CgroupLimitTest, OfARealGroupIsFound) {
  const bool v1 = std::filesystem::exists("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  const std::string group =
      absl::StrCat(v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup", "/perfd-test-", getpid());
  std::error_code error;
  if (geteuid() != 0 || !std::filesystem::create_directory(group, error))
    GTEST_SKIP() << "SKIPPED: no control group can be made here";
  constexpr uint64_t kLimit = uint64_t{48} << 20;
  std::ofstream(group + (v1 ? "/memory.limit_in_bytes" : "/memory.max")) << kLimit;
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  std::ofstream(group + "/cgroup.procs") << child;
  const bool limited =
      std::filesystem::exists(group + (v1 ? "/memory.limit_in_bytes" : "/memory.max"));
  const CgroupMemory memory = ReadCgroupMemory(child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (int i = 0; i < 200 && !std::filesystem::remove(group, error); ++i) usleep(10'000);
  if (!limited) GTEST_SKIP() << "SKIPPED: no memory controller";
  EXPECT_EQ(memory.limit.value_or(0), kLimit);
  EXPECT_LT(memory.current, kLimit);
}

}  // namespace
}  // namespace perfd::agent
