#include "agent/procfs/procfs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "agent/procfs/read_file.h"
#include "tests/unit/procfs/fake_proc.h"

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;

TEST(ProcFs, ReadsAFakeProcess) {
  FakeProc proc;
  proc.AddProcess({.pid = 42,
                   .arguments = {"app", "", "-x"},
                   .environment = {{"A", "1"}, {"A", "2"}, {"B", ""}, {"C", "x=y"}},
                   .start_ticks = 777});
  const ProcFs procfs(proc.root());
  EXPECT_THAT(*procfs.Pids(), ElementsAre(42));
  EXPECT_THAT(*procfs.Threads(42), ElementsAre(42));
  EXPECT_EQ(*procfs.StartTicks(42), 777u);
  EXPECT_EQ(procfs.Status(42)->real_uid, 1000u);
  EXPECT_EQ(*procfs.Executable(42), "/usr/bin/app");
  EXPECT_THAT(*procfs.CommandLine(42), ElementsAre("app", "", "-x"));
  const auto environment = *procfs.Environment(42);
  EXPECT_EQ(environment.at("A"), "1") << "getenv finds the first";
  EXPECT_EQ(environment.at("B"), "");
  EXPECT_EQ(environment.at("C"), "x=y");
}

TEST(ProcFs, WhoStartedItAndWhatItWaitsFor) {
  FakeProc proc;
  proc.AddProcess({.pid = 42, .arguments = {"a) b"}, .parent_pid = 41});
  proc.Write("42/wchan", "do_wait");
  const ProcFs procfs(proc.root());
  EXPECT_EQ(procfs.Stamp(42)->parent_pid, 41);
  EXPECT_EQ(*procfs.WaitChannel(42), "do_wait");
  EXPECT_TRUE(absl::IsNotFound(procfs.WaitChannel(43).status()));
}

TEST(ProcFs, CommandNamesWithParenthesesDoNotShiftFields) {
  FakeProc proc;
  proc.AddProcess({.pid = 5, .arguments = {"a) R 1 (b"}, .start_ticks = 31});
  EXPECT_EQ(*ProcFs(proc.root()).StartTicks(5), 31u);
}

TEST(ProcFs, CpuTimeOfAThreadIsExactAndOfAProcessInTicks) {
  FakeProc proc;
  proc.AddProcess({.pid = 5});
  const ProcFs procfs(proc.root());
  EXPECT_EQ(*procfs.CpuNs(5, 5), 123456789u);
  const auto tick = static_cast<uint64_t>(1'000'000'000 / ::sysconf(_SC_CLK_TCK));
  EXPECT_EQ(*procfs.CpuNs(5, 0), 200 * tick);
}

TEST(ProcFs, ScheduleOfAllThreads) {
  FakeProc proc;
  proc.AddProcess({.pid = 5});
  proc.Write("5/task/7/schedstat", "1 2 30\n");
  proc.Write("5/task/8/schedstat", "no numbers\n");
  const std::vector<ThreadSchedule> expected = {{5, 123456789, 5, 6}, {7, 1, 2, 30}};
  EXPECT_EQ(*ProcFs(proc.root()).Schedule(5), expected);
}

TEST(ProcFs, AMissingProcessIsNotFoundEverywhere) {
  FakeProc proc;
  const ProcFs procfs(proc.root());
  EXPECT_TRUE(absl::IsNotFound(procfs.Threads(9).status()));
  EXPECT_TRUE(absl::IsNotFound(procfs.Status(9).status()));
  EXPECT_TRUE(absl::IsNotFound(procfs.StartTicks(9).status()));
  EXPECT_TRUE(absl::IsNotFound(procfs.CpuNs(9, 9).status()));
  EXPECT_TRUE(absl::IsNotFound(procfs.Schedule(9).status()));
  EXPECT_TRUE(absl::IsNotFound(procfs.Environment(9).status()));
  EXPECT_TRUE(absl::IsNotFound(procfs.CommandLine(9).status()));
  EXPECT_TRUE(absl::IsNotFound(procfs.Executable(9).status()));
  EXPECT_TRUE(absl::IsNotFound(procfs.Maps(9).status()));
  EXPECT_TRUE(absl::IsNotFound(procfs.Cgroup(9).status()));
  EXPECT_TRUE(absl::IsNotFound(procfs.ExecutableHead(9, 4).status()));
}

TEST(ProcFs, ChoosesTheCgroupThatSaysMost) {
  FakeProc proc;
  proc.AddProcess({.pid = 1, .cgroup = "5:memory:/slurm/job_7\n0::/system.slice/x\n"});
  proc.AddProcess({.pid = 2, .cgroup = "9:cpu:/\n5:memory:/slurm/job_7\n0::/\n"});
  proc.AddProcess({.pid = 3, .cgroup = "0::/\n"});
  proc.AddProcess({.pid = 4, .cgroup = "no colons\n"});
  const ProcFs procfs(proc.root());
  EXPECT_EQ(*procfs.Cgroup(1), "/system.slice/x");
  EXPECT_EQ(*procfs.Cgroup(2), "/slurm/job_7");
  EXPECT_EQ(*procfs.Cgroup(3), "/");
  EXPECT_TRUE(absl::IsInvalidArgument(procfs.Cgroup(4).status()));
}

TEST(ProcFs, ReadsSysctls) {
  FakeProc proc;
  proc.Write("sys/kernel/perf_event_paranoid", "-1\n");
  proc.Write("sys/kernel/text", "none\n");
  const ProcFs procfs(proc.root());
  EXPECT_EQ(*procfs.SysctlInt("kernel/perf_event_paranoid"), -1);
  EXPECT_TRUE(absl::IsInvalidArgument(procfs.SysctlInt("kernel/text").status()));
  EXPECT_TRUE(absl::IsNotFound(procfs.SysctlInt("kernel/none").status()));
}

TEST(ReadWholeFile, RefusesOneByteMoreThanTheLimit) {
  FakeProc proc;
  proc.Write("f", std::string(40000, 'x'));
  EXPECT_EQ(ReadWholeFile(proc.root() + "/f", 40000)->size(), 40000u);
  EXPECT_TRUE(absl::IsResourceExhausted(ReadWholeFile(proc.root() + "/f", 39999).status()));
  EXPECT_EQ(HeadOfFile(proc.root() + "/f", 10)->size(), 10u);
}

TEST(ReadWholeFile, AFifoDoesNotBlock) {
  FakeProc proc;
  ASSERT_EQ(::mkfifo((proc.root() + "/fifo").c_str(), 0600), 0);
  EXPECT_FALSE(ReadWholeFile(proc.root() + "/fifo", 10).ok());
}

}  // namespace
}  // namespace perfd::agent
