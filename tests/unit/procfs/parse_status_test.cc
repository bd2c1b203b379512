#include <gtest/gtest.h>

#include "agent/procfs/procfs.h"

namespace perfd::agent {
namespace {

TEST(ParseStatus, ReadsTheFieldsThatMatter) {
  const auto status = ParseStatus(
      "Name:\tmy app: x\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t42\nPid:\t42\nPPid:\t7\n"
      "TracerPid:\t9\nUid:\t1000\t1001\t1002\t1000\nGid:\t100\t101\t102\t100\nGroups:\t7 "
      "4294967294 \nVmRSS:\t    2048 kB\n"
      "Threads:\t5\nCapEff:\t0000004000080000\nSeccomp:\t2\nnonsense without colon\n");
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->name, "my app: x");
  EXPECT_EQ(status->state, 'S');
  EXPECT_EQ(status->tgid, 42);
  EXPECT_EQ(status->parent_pid, 7);
  EXPECT_EQ(status->tracer_pid, 9);
  EXPECT_EQ(status->real_uid, 1000u);
  EXPECT_EQ(status->effective_uid, 1001u);
  EXPECT_EQ(status->saved_uid, 1002u);
  EXPECT_EQ(status->real_gid, 100u);
  EXPECT_EQ(status->effective_gid, 101u);
  EXPECT_EQ(status->saved_gid, 102u);
  EXPECT_EQ(status->groups, (std::vector<uint32_t>{7, 4294967294u}));
  EXPECT_EQ(status->memory.resident_bytes, 2048u * 1024);
  EXPECT_EQ(status->thread_count, 5);
  EXPECT_EQ(status->capabilities.effective, 0x4000080000u);
  EXPECT_EQ(status->seccomp_mode, 2);
}

TEST(ParseStatus, RefusesWhatDoesNotParse) {
  EXPECT_FALSE(ParseStatus("").ok());
  EXPECT_FALSE(ParseStatus("Name:\tx\n").ok());
  EXPECT_FALSE(ParseStatus("Tgid:\tx\n").ok());
  EXPECT_FALSE(ParseStatus("Tgid:\t1\nUid:\t1\t1\n").ok());
  EXPECT_FALSE(ParseStatus("Tgid:\t1\nGid:\t1\t1\n").ok());
  EXPECT_FALSE(ParseStatus("Tgid:\t1\nGroups:\t1 x\n").ok());
  EXPECT_FALSE(ParseStatus("Tgid:\t1\nGroups:\t1 -1\n").ok());
  EXPECT_FALSE(ParseStatus("Tgid:\t1\nVmRSS:\t99999999999999999999 kB\n").ok());
}

TEST(ParseStatus, TakesAsManyGroupsAsAProcessCanHave) {
  std::string groups;
  for (int i = 0; i < 65536; ++i) groups += " 7";
  EXPECT_EQ(ParseStatus("Tgid:\t1\nGroups:" + groups + "\n")->groups.size(), 65536u);
  EXPECT_FALSE(ParseStatus("Tgid:\t1\nGroups:" + groups + " 7\n").ok());
  EXPECT_TRUE(ParseStatus("Tgid:\t1\nGroups:\t\n")->groups.empty());
}

}  // namespace
}  // namespace perfd::agent
