// Which control groups limit a process's memory, by version 1 and 2, over a fake tree and hostile text.
#include "agent/shadow/forking/cgroup_memory.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace perfd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kMountInfo[] =
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 master:2 - cgroup cgroup rw,memory\n"
    "41 31 0:38 /docker/7f /sys/fs/cgroup/my\\040unified rw - cgroup2 cgroup2 rw\n";

TEST(MemoryHierarchiesTest, OnlyThoseThatAccountMemory) {
  EXPECT_THAT(ParseMemoryHierarchies(kMountInfo),
              ElementsAre(MemoryHierarchy{"/sys/fs/cgroup/memory", "/", false},
                          MemoryHierarchy{"/sys/fs/cgroup/my unified", "/docker/7f", true}));
}

TEST(MemoryHierarchiesTest, BrokenLinesAreSkipped) {
  EXPECT_THAT(ParseMemoryHierarchies(""), IsEmpty());
  EXPECT_THAT(ParseMemoryHierarchies("1 2 3 4 - cgroup cgroup rw,memory\n"), IsEmpty());
  EXPECT_THAT(ParseMemoryHierarchies("1 2 0:1 / /cg rw cgroup cgroup rw,memory\n"), IsEmpty());
  EXPECT_THAT(ParseMemoryHierarchies("1 2 0:1 / /cg rw - cgroup cgroup\n"), IsEmpty());
  EXPECT_THAT(ParseMemoryHierarchies("1 2 0:1 / /cg rw - cgroup cgroup rw,memoryless\n"),
              IsEmpty());
  EXPECT_THAT(ParseMemoryHierarchies("1 2 0:1 / /c\\04 rw - cgroup2 x rw"),
              ElementsAre(MemoryHierarchy{"/c\\04", "/", true}));
}

TEST(GroupFoldersTest, FromTheOwnGroupToTheTop) {
  const std::vector<CgroupEntry> groups = {
      {4, "memory", "/slurm/job_7/step_0"}, {1, "cpu,cpuacct", "/other"}, {0, "", "/user/1000"}};
  EXPECT_THAT(GroupFolders({"/m", "/", false}, groups),
              ElementsAre("/m/slurm/job_7/step_0", "/m/slurm/job_7", "/m/slurm", "/m"));
  EXPECT_THAT(GroupFolders({"/m", "/slurm", false}, groups),
              ElementsAre("/m/job_7/step_0", "/m/job_7", "/m"));
  EXPECT_THAT(GroupFolders({"/u", "/", true}, groups),
              ElementsAre("/u/user/1000", "/u/user", "/u"));
  EXPECT_THAT(GroupFolders({"/u", "/user/1000", true}, groups), ElementsAre("/u"));
}

TEST(GroupFoldersTest, GroupsOutsideTheMountAreNobodysBusiness) {
  const std::vector<CgroupEntry> groups = {{4, "memory", "/slurm/job_77"}, {0, "", "/../../x"}};
  EXPECT_THAT(GroupFolders({"/m", "/slurm/job_7", false}, groups), IsEmpty());
  EXPECT_THAT(GroupFolders({"/m", "/docker", false}, groups), IsEmpty());
  EXPECT_THAT(GroupFolders({"/u", "/", true}, groups), IsEmpty());
  EXPECT_THAT(GroupFolders({"/u", "/", true}, {}), IsEmpty());
}

// A /proc and cgroup mounts of our own making.
class CgroupMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = absl::StrCat(::testing::TempDir(), "/cgroup-memory-", getpid());
    Write("proc/self/mountinfo",
          absl::StrCat("35 31 0:32 / ", root_, "/v1 rw - cgroup cgroup rw,memory\n",
                       "41 31 0:38 / ", root_, "/v2 rw - cgroup2 cgroup2 rw\n"));
    Write("proc/7/cgroup", "4:memory:/job/step\n0::/a/b\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = absl::StrCat(root_, "/", file);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void V1(const std::string& group, const std::string& limit, const std::string& usage) {
    Write(absl::StrCat("v1", group, "/memory.limit_in_bytes"), limit + "\n");
    Write(absl::StrCat("v1", group, "/memory.usage_in_bytes"), usage + "\n");
  }
  CgroupMemory Read() const { return ReadCgroupMemory(ProcFs(root_ + "/proc"), 7); }

  std::string root_;
};

TEST_F(CgroupMemoryTest, NoLimitAnywhere) {
  EXPECT_FALSE(Read().limit.has_value());  // no files at all
  V1("", "9223372036854771712", "123456");
  V1("/job", "9223372036854771712", "1000");
  V1("/job/step", "9223372036854771712", "1000");
  Write("v1/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n");
  Write("v2/a/memory.max", "max\n");
  Write("v2/a/memory.current", "4096\n");
  const CgroupMemory memory = Read();
  EXPECT_FALSE(memory.limit.has_value());
  EXPECT_FALSE(memory.oom_waits);
  EXPECT_FALSE(memory.oom_group);
}

TEST_F(CgroupMemoryTest, Version1TheLeastRoomOfAllLevelsCounts) {
  V1("/job/step", "9223372036854771712", "1000");
  V1("/job", "8000", "1500");  // room 6500
  V1("", "100000", "95000");   // room 5000
  EXPECT_EQ(*Read().limit, 100000u);
  EXPECT_EQ(Read().current, 95000u);
  V1("/job/step", "2000", "1000");
  EXPECT_EQ(*Read().limit, 2000u);
  EXPECT_EQ(Read().current, 1000u);
}

TEST_F(CgroupMemoryTest, MoreUsedThanAllowedIsNoRoom) {
  V1("/job", "1000", "1500");
  V1("", "2000", "1999");
  EXPECT_EQ(*Read().limit, 1000u);
  EXPECT_EQ(Read().current, 1500u);
}

TEST_F(CgroupMemoryTest, BothVersionsCount) {
  V1("/job", "8000", "1000");
  Write("v2/a/b/memory.max", "9000\n");
  Write("v2/a/b/memory.current", "8999\n");
  Write("v2/a/memory.oom.group", "1\n");
  EXPECT_EQ(*Read().limit, 9000u);
  EXPECT_TRUE(Read().oom_group);
}

TEST_F(CgroupMemoryTest, Version1MayPutTheJobToSleep) {
  V1("/job", "8000", "1000");
  Write("v1/job/memory.oom_control", "oom_kill_disable 1\nunder_oom 0\noom_kill 0\n");
  EXPECT_TRUE(Read().oom_waits);
}

TEST_F(CgroupMemoryTest, AProcessThatIsGoneHasNoLimit) {
  V1("/job", "8000", "1000");
  EXPECT_FALSE(ReadCgroupMemory(ProcFs(root_ + "/proc"), 8).limit.has_value());
}

}  // namespace
}  // namespace perfd
