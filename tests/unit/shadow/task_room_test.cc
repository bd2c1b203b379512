// How many more tasks a rank may begin: by its control group, and by its user.
#include "agent/shadow/forking/task_room.h"

#include "tests/unit/procfs/fake_groups.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;

constexpr char kLimits[] =
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max cpu time              unlimited            unlimited            seconds   \n"
    "Max processes             100                  200                  processes \n"
    "Max open files            1024                 524288               files     \n";

TEST(TaskLimitTest, TheSoftOne) {
  EXPECT_EQ(ParseTaskLimit(kLimits), 100u);
  EXPECT_EQ(ParseTaskLimit("Max processes             unlimited            unlimited\n"),
            std::nullopt);
  EXPECT_EQ(ParseTaskLimit("Max processes \n"), std::nullopt);
  EXPECT_EQ(ParseTaskLimit("Max processes -3 4"), std::nullopt);
  EXPECT_EQ(ParseTaskLimit(""), std::nullopt);
}

class TaskRoomTest : public FakeGroups {
 protected:
  TaskRoomTest() : FakeGroups("pids") { user_.real_uid = 1000; }

  void Process(int pid, int uid, int threads) {
    Write(
        absl::StrCat("proc/", pid, "/status"),
        absl::StrCat("Name:\tx\nState:\tR (running)\nTgid:\t", pid, "\nPPid:\t1\nUid:\t", uid, "\t",
                     uid, "\t", uid, "\t", uid, "\nGid:\t1\t1\t1\t1\nThreads:\t", threads, "\n"));
  }
  TaskRoom Read(uint64_t enough = 1000) const { return ReadTaskRoom(procfs(), 7, user_, enough); }

  ProcessStatus user_;
};

TEST_F(TaskRoomTest, NothingLimits) {
  EXPECT_FALSE(Read().left.has_value());
  Write("v2/a/pids.max", "max\n");
  Write("v2/a/pids.current", "5\n");
  EXPECT_FALSE(Read().left.has_value());
  EXPECT_TRUE(JudgeTasks(Read(), 1 << 20).ok());
}

TEST_F(TaskRoomTest, TheGroupWithTheLeastRoomCounts) {
  Write("v1/job/step/pids.max", "500\n");
  Write("v1/job/step/pids.current", "100\n");
  Write("v2/a/pids.max", "400\n");
  Write("v2/a/pids.current", "390\n");
  EXPECT_EQ(Read().left, 10u);
  Write("v1/job/pids.max", "4\n");
  Write("v1/job/pids.current", "9\n");
  EXPECT_EQ(Read().left, 0u);
  EXPECT_THAT(Read().limit, HasSubstr("pids.max of its control group allows 4, 9 are there"));
}

TEST_F(TaskRoomTest, TheUserIsCountedOnlyWhereTheNodeHasTooMany) {
  Write("proc/7/limits", kLimits);
  Write("proc/loadavg", "0.10 0.20 0.30 2/90 13652\n");
  Process(7, 1000, 20);
  Process(8, 1000, 15);
  Process(9, 1001, 40);
  EXPECT_FALSE(Read(10).left.has_value()) << "90 of all users leave ten of 100 for sure";
  EXPECT_EQ(Read(11).left, 65u);
  EXPECT_THAT(Read(11).limit, HasSubstr("RLIMIT_NPROC of its user allows 100, 35 are there"));
  user_.real_uid = 0;
  EXPECT_FALSE(Read().left.has_value()) << "root has no such limit";
  user_.real_uid = 1000;
  user_.capabilities.effective = uint64_t{1} << 24;
  EXPECT_FALSE(Read().left.has_value()) << "nor has who may exceed limits";
}

TEST_F(TaskRoomTest, SomeMustBeLeftToTheJob) {
  TaskRoom room{kSpareTasks + 8, "pids.max"};
  EXPECT_TRUE(JudgeTasks(room, 8).ok());
  EXPECT_THAT(std::string(JudgeTasks(room, 9).message()), HasSubstr("must be left to the job"));
}

}  // namespace
}  // namespace perfd::agent
