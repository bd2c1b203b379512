#include "agent/procfs/process_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/unit/procfs/fake_proc.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;
constexpr uint64_t kMb = 1 << 20;
constexpr char kText[] =
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max data size             unlimited            unlimited            bytes     \n"
    "Max locked memory         8388608              8388608              bytes     \n"
    "Max address space         209715200            unlimited            bytes     \n";

TEST(ProcessLimitsTest, SoftLimitsByName) {
  EXPECT_EQ(SoftLimit(kText, "Max address space"), 209715200u);
  EXPECT_EQ(SoftLimit(kText, "Max data size"), kNoLimit);
  EXPECT_EQ(SoftLimit(kText, "Max address"), kNoLimit) << "a part of a name";
  EXPECT_EQ(SoftLimit("", "Max data size"), kNoLimit);
  EXPECT_EQ(SoftLimit("Max data size", "Max data size"), kNoLimit);
  EXPECT_EQ(SoftLimit("Max data size   -1 x", "Max data size"), kNoLimit);
}

TEST(ProcessLimitsTest, OnlyWhatIsLockedCountsAgainstTheLimitOfLockedMemory) {
  FakeProc proc;
  proc.AddProcess({.pid = 7});
  proc.Write("7/limits", kText);
  const auto read = [&](const char* more) {
    proc.Write("7/status", std::string("State:\tR (x)\nTgid:\t7\nVmSize:\t102400 kB\n") + more);
    return *ReadProcessLimits(ProcFs(proc.root()), 7);
  };
  EXPECT_EQ(read("").address_space.used, 100 * kMb);
  EXPECT_FALSE(read("VmLck:\t0 kB\n").locks);
  EXPECT_EQ(read("VmLck:\t0 kB\n").locked.limit, 8 * kMb);
  EXPECT_TRUE(read("VmLck:\t64 kB\n").locks);
  EXPECT_EQ(read("VmLck:\t64 kB\n").locked.limit, 8 * kMb);
  EXPECT_EQ(read("VmLck:\t64 kB\n").locked.used, kMb / 16);
  EXPECT_EQ(read("VmLck:\t64 kB\nCapEff:\t4000\n").locked.limit, kNoLimit);
}

TEST(ProcessLimitsTest, WhatItGaveBackItMayTakeAgain) {
  FakeProc proc;
  proc.AddProcess({.pid = 7});
  proc.Write("7/limits", kText);
  const auto read = [&](const char* peak) {
    proc.Write("7/status", std::string("State:\tR (x)\nTgid:\t7\n") + peak +
                               "VmSize:\t102400 kB\nVmData:\t10240 kB\nVmLck:\t1024 kB\n");
    return *ReadProcessLimits(ProcFs(proc.root()), 7);
  };
  EXPECT_EQ(read("").address_space.used, 100 * kMb);
  EXPECT_EQ(read("VmPeak:\t1 kB\n").address_space.used, 100 * kMb) << "nonsense takes nothing off";
  const ProcessLimits limits = read("VmPeak:\t153600 kB\n");
  EXPECT_EQ(limits.address_space.used, 150 * kMb);
  EXPECT_EQ(limits.data.used, 60 * kMb);
  EXPECT_EQ(limits.locked.used, 51 * kMb);
}

TEST(ProcessLimitsTest, RoomIsForUsAndForWhatTheProgramAsksNext) {
  const auto check = [](uint64_t left, uint64_t bytes) {
    ProcessLimits limits;
    limits.address_space = {1000 * kMb, 1000 * kMb - left};
    return CheckRoom(limits, bytes);
  };
  EXPECT_TRUE(check(67 * kMb, 3 * kMb).ok());
  EXPECT_FALSE(check(67 * kMb - 1, 3 * kMb).ok());
  EXPECT_TRUE(check(120 * kMb, 40 * kMb).ok()) << "twice ours is more";
  EXPECT_FALSE(check(120 * kMb - 1, 40 * kMb).ok());
  const absl::Status refused = check(2 * kMb, 3 * kMb);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("RLIMIT_AS) leaves it 2.0 MB"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("raise the limit by 65.0 MB"));
  ProcessLimits locked, data;
  locked.locked = {8 * kMb, 7 * kMb};
  EXPECT_TRUE(CheckRoom(locked, kMb).ok()) << "nothing of it is locked";
  locked.locks = true;
  data.data = {8 * kMb, 9 * kMb};
  EXPECT_THAT(std::string(CheckRoom(locked, kMb).message()), HasSubstr("RLIMIT_MEMLOCK"));
  EXPECT_THAT(std::string(CheckRoom(data, kMb).message()), HasSubstr("leaves it 0.0 MB"));
  EXPECT_TRUE(CheckRoom({}, 1000 * kMb).ok());
}

TEST(ProcessLimitsTest, CpuTimeIsLeftForTheProgram) {
  FakeProc proc;
  proc.AddProcess({.pid = 7});
  proc.Write("7/limits",
             "Max cpu time              100                  unlimited            seconds\n");
  const auto limits = ReadProcessLimits(ProcFs(proc.root()), 7);
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_EQ(limits->cpu_limit_s, 100u);
  EXPECT_FALSE(limits->bounds_real_time);
  const auto check = [](uint64_t limit, uint64_t used) {
    ProcessLimits some;
    some.cpu_limit_s = limit;
    some.cpu_used_s = used;
    return CheckCpuTime(some);
  };
  EXPECT_TRUE(CheckCpuTime({}).ok());
  EXPECT_TRUE(check(100, 40).ok());
  EXPECT_FALSE(check(100, 41).ok()) << "less than a minute is left";
  EXPECT_TRUE(check(36'000, 34'200).ok());
  const absl::Status refused = check(36'000, 34'201);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("RLIMIT_CPU) leaves it 1799 s"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("at least 1800 s"));
  EXPECT_FALSE(check(10, 20).ok()) << "it is being told that its time is over";
  ProcessLimits real_time;
  real_time.bounds_real_time = true;
  EXPECT_THAT(std::string(CheckCpuTime(real_time).message()), HasSubstr("RLIMIT_RTTIME"));
}

// A thread that must pause now and then, by a limit that only then counts.
TEST(ProcessLimitsTest, RealTimeThreadsOfThisProcess) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_RTTIME, &before), 0);
  rlimit limited = before;
  limited.rlim_cur = 10'000'000;
  ASSERT_EQ(::setrlimit(RLIMIT_RTTIME, &limited), 0);
  EXPECT_FALSE(ReadProcessLimits(ProcFs(), ::getpid())->bounds_real_time);
  const sched_param first{.sched_priority = 1};
  if (::sched_setscheduler(0, SCHED_RR, &first) == 0) {
    EXPECT_TRUE(ReadProcessLimits(ProcFs(), ::getpid())->bounds_real_time);
    const sched_param usual{};
    EXPECT_EQ(::sched_setscheduler(0, SCHED_OTHER, &usual), 0);
  }
  ::setrlimit(RLIMIT_RTTIME, &before);
}

TEST(ProcessLimitsTest, MappingsAreLeftForTheProgram) {
  FakeProc proc;
  const ProcFs procfs(proc.root());
  EXPECT_FALSE(CheckMappingRoom(procfs, 1, 1).ok()) << "unknown";
  proc.Write("sys/vm/max_map_count", "65530\n");
  EXPECT_TRUE(CheckMappingRoom(procfs, 64504, 3).ok());
  const absl::Status refused = CheckMappingRoom(procfs, 64505, 3);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("it has 64505 mappings of the 65530"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("takes 3"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("at least 1023"));
  proc.Write("sys/vm/max_map_count", "200\n");
  EXPECT_TRUE(CheckMappingRoom(procfs, 133, 3).ok());
  EXPECT_FALSE(CheckMappingRoom(procfs, 134, 3).ok());
}

// As the kernel tells it.
TEST(ProcessLimitsTest, OfThisProcess) {
  const auto limits = ReadProcessLimits(ProcFs(), ::getpid());
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_GT(limits->address_space.used, kMb);
  rlimit own{};
  ::getrlimit(RLIMIT_AS, &own);
  EXPECT_EQ(limits->address_space.limit, own.rlim_cur == RLIM_INFINITY ? kNoLimit : own.rlim_cur);
}

}  // namespace
}  // namespace perfd::agent
