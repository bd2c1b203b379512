// How much memory control groups leave a process, by version 1 and 2, over a fake tree.
#include "agent/shadow/forking/cgroup_memory.h"

#include "absl/strings/str_cat.h"
#include "tests/unit/procfs/fake_groups.h"

namespace perfd::agent {
namespace {

class CgroupMemoryTest : public FakeGroups {
 protected:
  CgroupMemoryTest() : FakeGroups("memory") {}

  void V1(const std::string& group, const std::string& limit, const std::string& usage) {
    Write(absl::StrCat("v1", group, "/memory.limit_in_bytes"), limit + "\n");
    Write(absl::StrCat("v1", group, "/memory.usage_in_bytes"), usage + "\n");
  }
  CgroupMemory Read() const { return ReadCgroupMemory(procfs(), 7); }
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

TEST_F(CgroupMemoryTest, AboveHighRanksAreSlowedDown) {
  Write("v2/a/b/memory.max", "9000\n");
  Write("v2/a/b/memory.high", "5000\n");
  Write("v2/a/b/memory.current", "1000\n");
  EXPECT_EQ(*Read().limit, 5000u);
  Write("v2/a/b/memory.high", "max\n");
  EXPECT_EQ(*Read().limit, 9000u);
}

TEST_F(CgroupMemoryTest, WhatFilesLeftInMemoryMakesRoom) {
  Write("v2/a/b/memory.max", "9000\n");
  Write("v2/a/b/memory.current", "8900\n");
  Write("v2/a/b/memory.stat", "anon 800\ninactive_file 7000\nactive_file 100\n");
  EXPECT_EQ(Read().current, 1900u);
  Write("v2/a/b/memory.stat", "inactive_file 123456789\n");  // counted at another moment
  EXPECT_EQ(Read().current, 0u);
  Write("v2/a/b/memory.stat", "inactive_file -1\nbroken");
  EXPECT_EQ(Read().current, 8900u);
  V1("/job", "100", "90");
  Write("v1/job/memory.stat", "inactive_file 90\ntotal_inactive_file 50\n");
  EXPECT_EQ(*Read().limit, 100u);
  EXPECT_EQ(Read().current, 40u);
}

TEST_F(CgroupMemoryTest, Version1MayPutTheJobToSleep) {
  V1("/job", "8000", "1000");
  Write("v1/job/memory.oom_control", "oom_kill_disable 1\nunder_oom 0\noom_kill 0\n");
  EXPECT_TRUE(Read().oom_waits);
}

TEST_F(CgroupMemoryTest, AProcessThatIsGoneHasNoLimit) {
  V1("/job", "8000", "1000");
  EXPECT_FALSE(ReadCgroupMemory(procfs(), 8).limit.has_value());
}

}  // namespace
}  // namespace perfd::agent
