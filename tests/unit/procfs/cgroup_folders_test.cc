// Which control groups limit a process, by version 1 and 2, from hostile text.
#include "agent/procfs/cgroup/cgroup_folders.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kMountInfo[] =
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 master:2 - cgroup cgroup rw,memory\n"
    "41 31 0:38 /docker/7f /sys/fs/cgroup/my\\040unified rw - cgroup2 cgroup2 rw\n";

TEST(HierarchiesTest, OnlyThoseOfTheController) {
  EXPECT_THAT(
      ParseHierarchies(kMountInfo, "memory"),
      ElementsAre(GroupHierarchy{"/sys/fs/cgroup/memory", "/", "memory", false},
                  GroupHierarchy{"/sys/fs/cgroup/my unified", "/docker/7f", "memory", true}));
}

TEST(HierarchiesTest, BrokenLinesAreSkipped) {
  EXPECT_THAT(ParseHierarchies("", "memory"), IsEmpty());
  EXPECT_THAT(ParseHierarchies("1 2 3 4 - cgroup cgroup rw,memory\n", "memory"), IsEmpty());
  EXPECT_THAT(ParseHierarchies("1 2 0:1 / /cg rw cgroup cgroup rw,memory\n", "memory"), IsEmpty());
  EXPECT_THAT(ParseHierarchies("1 2 0:1 / /cg rw - cgroup cgroup\n", "memory"), IsEmpty());
  EXPECT_THAT(ParseHierarchies("1 2 0:1 / /cg rw - cgroup cgroup rw,memoryless\n", "memory"),
              IsEmpty());
  EXPECT_THAT(ParseHierarchies("1 2 0:1 / /c\\04 rw - cgroup2 x rw", "memory"),
              ElementsAre(GroupHierarchy{"/c\\04", "/", "memory", true}));
}

TEST(GroupFoldersTest, FromTheOwnGroupToTheTop) {
  const std::vector<CgroupEntry> groups = {
      {4, "memory", "/slurm/job_7/step_0"}, {1, "cpu,cpuacct", "/other"}, {0, "", "/user/1000"}};
  EXPECT_THAT(GroupFolders({"/m", "/", "memory", false}, groups),
              ElementsAre("/m/slurm/job_7/step_0", "/m/slurm/job_7", "/m/slurm", "/m"));
  EXPECT_THAT(GroupFolders({"/m", "/slurm", "memory", false}, groups),
              ElementsAre("/m/job_7/step_0", "/m/job_7", "/m"));
  EXPECT_THAT(GroupFolders({"/u", "/", "memory", true}, groups),
              ElementsAre("/u/user/1000", "/u/user", "/u"));
  EXPECT_THAT(GroupFolders({"/u", "/user/1000", "memory", true}, groups), ElementsAre("/u"));
}

TEST(GroupFoldersTest, GroupsOutsideTheMountAreNobodysBusiness) {
  const std::vector<CgroupEntry> groups = {{4, "memory", "/slurm/job_77"}, {0, "", "/../../x"}};
  EXPECT_THAT(GroupFolders({"/m", "/slurm/job_7", "memory", false}, groups), IsEmpty());
  EXPECT_THAT(GroupFolders({"/m", "/docker", "memory", false}, groups), IsEmpty());
  EXPECT_THAT(GroupFolders({"/u", "/", "memory", true}, groups), IsEmpty());
  EXPECT_THAT(GroupFolders({"/u", "/", "memory", true}, {}), IsEmpty());
}

}  // namespace
}  // namespace perfd::agent
