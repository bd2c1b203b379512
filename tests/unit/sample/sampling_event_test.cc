#include "agent/sample/sampling_event.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "agent/sample/ring/ring_budget.h"
#include "agent/sample/thread_rings.h"
#include "core/perfdata/records/event_layout.h"
#include "tests/unit/procfs/fake_proc.h"

namespace perfd::agent {
namespace {

TEST(MakeSamplingAttr, AClockIsProgrammedByPeriod) {
  const perf_event_attr attr = MakeSamplingAttr(CpuClockEncoding(), {.frequency_hz = 250});
  EXPECT_EQ(attr.freq, 0u);
  EXPECT_EQ(attr.sample_period, 4'000'000u);
  EXPECT_EQ(attr.sample_type, kBaseSampleType | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER)
      << "how a thread came into the kernel";
  EXPECT_EQ(attr.exclude_callchain_user, 1u);
  EXPECT_EQ(attr.exclude_callchain_kernel, 0u);
  EXPECT_EQ(attr.sample_regs_user, kUserIpMask);
  EXPECT_EQ(attr.sample_id_all, 1u);
  EXPECT_EQ(attr.inherit, 0u);
}

TEST(StaggeredRate, NoTwoThreadsKeepStep) {
  const perf_event_attr attr = MakeSamplingAttr(CpuClockEncoding(), {.frequency_hz = 200});
  for (int32_t id = 1000; id < 1020; ++id) {
    const uint64_t rate = StaggeredRate(attr, attr.sample_period, id);
    EXPECT_GE(rate, 4'950'000u);
    EXPECT_LE(rate, 5'050'000u);
    for (int32_t other = id + 1; other < 1020; ++other)
      EXPECT_NE(rate, StaggeredRate(attr, attr.sample_period, other));
  }
  const perf_event_attr cycles = MakeSamplingAttr(CyclesEncoding(), {.frequency_hz = 250});
  EXPECT_EQ(StaggeredRate(cycles, 250, 1000), 250u) << "the kernel varies their periods";
}

TEST(MakeSamplingAttr, OthersByFrequency) {
  const perf_event_attr attr = MakeSamplingAttr(CyclesEncoding(), {.frequency_hz = 250});
  EXPECT_EQ(attr.freq, 1u);
  EXPECT_EQ(attr.sample_freq, 250u);
}

TEST(RateValue, StaysInsideTheBounds) {
  const perf_event_attr cycles = MakeSamplingAttr(CyclesEncoding(), {});
  EXPECT_EQ(RateValue(cycles, 0), 1u);
  EXPECT_EQ(RateValue(cycles, 1e9), 10'000u);
  EXPECT_EQ(RateValue(cycles, std::nan("")), 1u);
  const perf_event_attr clock = MakeSamplingAttr(CpuClockEncoding(), {});
  EXPECT_EQ(RateValue(clock, 1), 1'000'000'000u);
  EXPECT_EQ(RateValue(clock, 1e9), 100'000u);
}

TEST(MakeSamplingAttr, CallPaths) {
  const perf_event_attr fp =
      MakeSamplingAttr(CpuClockEncoding(), {.callpaths = CallPaths::kFramePointer});
  EXPECT_EQ(fp.sample_type, kBaseSampleType | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER);
  EXPECT_EQ(fp.exclude_callchain_kernel, 0u);
  EXPECT_EQ(fp.exclude_callchain_user, 0u);
  const perf_event_attr dwarf = MakeSamplingAttr(
      CpuClockEncoding(), {.callpaths = CallPaths::kDwarf, .stack_bytes = 1'000'003});
  EXPECT_TRUE(EventLayout::Of(dwarf).can_decode());
  EXPECT_EQ(dwarf.sample_regs_user, kUserRegisterMask);
  EXPECT_EQ(dwarf.sample_stack_user, 32768u);
  const perf_event_attr off = MakeSamplingAttr(CpuClockEncoding(), {});
  const perf_event_attr automatic =
      MakeSamplingAttr(CpuClockEncoding(), {.callpaths = CallPaths::kAuto});
  EXPECT_EQ(std::memcmp(&off, &automatic, sizeof off), 0) << "but for a few rings";
  const perf_event_attr piece = WithPieceOfStack(automatic);
  EXPECT_EQ(piece.sample_type, dwarf.sample_type);
  EXPECT_EQ(piece.sample_stack_user, 1024u);
}

TEST(MakeSamplingAttr, WithoutTheKernelNothingIsRecordedOfIt) {
  for (const CallPaths paths :
       {CallPaths::kOff, CallPaths::kFramePointer, CallPaths::kDwarf, CallPaths::kAuto}) {
    const SamplingOptions options{.callpaths = paths};
    EventEncoding user = CpuClockEncoding();
    user.exclude_kernel = true;
    const perf_event_attr asked = MakeSamplingAttr(user, options);
    perf_event_attr left = MakeSamplingAttr(CpuClockEncoding(), options);
    LeaveKernelOut(options, &left);
    EXPECT_EQ(std::memcmp(&asked, &left, sizeof asked), 0) << "whoever leaves it out";
  }
  EventEncoding user = CpuClockEncoding();
  user.exclude_kernel = true;
  EXPECT_EQ(MakeSamplingAttr(user, {}).sample_type, kBaseSampleType);
}

TEST(RingBytes, IsAPowerOfTwoOfPages) {
  EXPECT_EQ(RingBytes({.ring_bytes = 1}, 4096), 4096u);
  EXPECT_EQ(RingBytes({.ring_bytes = 4097}, 4096), 8192u);
  EXPECT_EQ(RingBytes({.ring_bytes = UINT64_MAX}, 4096), 64u << 20);
  EXPECT_EQ(RingBytes({}, 4096), 65536u);
  EXPECT_EQ(RingBytes({.callpaths = CallPaths::kAuto}, 4096), 65536u);
}

TEST(StackRings, TakeAnEighthOfWhatMayBeLocked) {
  const SamplingOptions usual{.callpaths = CallPaths::kAuto};
  EXPECT_EQ(StackRings(usual, UINT64_MAX), 16);
  EXPECT_EQ(StackRings(usual, 8u << 20), 4);
  EXPECT_EQ(StackRings(usual, 1u << 20), 0);
  EXPECT_EQ(StackRings({.frequency_hz = 401, .callpaths = CallPaths::kAuto}, UINT64_MAX), 0);
  EXPECT_EQ(StackRings({.callpaths = CallPaths::kDwarf}, UINT64_MAX), 0) << "all of them do";
}

TEST(FairRingBytes, GivesEveryThreadARingOfTheSameSize) {
  constexpr uint64_t kPage = 4096;
  constexpr uint64_t kLockable = 1032 << 10;  // the kernel's default on two CPUs
  EXPECT_EQ(FairRingBytes(65536, 1, kLockable, kPage), 65536u);
  EXPECT_EQ(FairRingBytes(65536, 1000, kUnlimitedBytes, kPage), 65536u);
  EXPECT_EQ(FairRingBytes(65536, 0, kLockable, kPage), 65536u) << "nobody knows how many";
  for (int threads = 1; threads <= 96; ++threads) {
    const uint64_t bytes = FairRingBytes(65536, threads, kLockable, kPage);
    EXPECT_LE((bytes + kPage) * static_cast<uint64_t>(threads), kLockable * 3 / 4) << threads;
    EXPECT_EQ(bytes & (bytes - 1), 0u);
    const bool larger_would_do =
        (2 * bytes + kPage) * static_cast<uint64_t>(threads) <= kLockable * 3 / 4;
    EXPECT_FALSE(bytes < 65536 && larger_would_do) << threads;
  }
  EXPECT_EQ(FairRingBytes(65536, 97, kLockable, kPage), kPage)
      << "a page each is tried in any case";
  EXPECT_EQ(FairRingBytes(65536, 5, 0, kPage), kPage);
}

TEST(LockableBytes, FollowsTheKernelsRules) {
  FakeProc proc;
  const ProcFs procfs(proc.root());
  const auto put = [&](const char* paranoid, const char* capabilities) {
    proc.Write("sys/kernel/perf_event_paranoid", paranoid);
    proc.Write("sys/kernel/perf_event_mlock_kb", "516\n");
    proc.AddProcess({.pid = ::getpid()});
    proc.Write(std::to_string(::getpid()) + "/status",
               std::string("Name:\tx\nTgid:\t1\nCapEff:\t") + capabilities + "\n");
  };
  put("-1\n", "0000000000000000");
  EXPECT_EQ(LockableBytes(procfs), kUnlimitedBytes);
  put("2\n", "0000000000004000");  // CAP_IPC_LOCK is bit 14
  EXPECT_EQ(LockableBytes(procfs), kUnlimitedBytes);
  rlimit saved{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &saved), 0);
  const rlimit low{std::min<rlim_t>(12345, saved.rlim_max), saved.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &low), 0);
  put("2\n", "0000000000000000");
  const auto cpus = static_cast<uint64_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  EXPECT_EQ(LockableBytes(procfs), cpus * (516 << 10) + low.rlim_cur);
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &saved), 0);
}

TEST(ParseCpuList, ReadsRangesAndRefusesNonsense) {
  EXPECT_EQ(ParseCpuList("0-2,5\n"), (std::vector<int32_t>{0, 1, 2, 5}));
  EXPECT_EQ(ParseCpuList("0"), (std::vector<int32_t>{0}));
  for (const char* bad : {"", "x", "3-1", "0-", "0-8192", "1-2-3", "-1"}) {
    EXPECT_TRUE(ParseCpuList(bad).empty()) << bad;
  }
  EXPECT_EQ(ParseCpuList("8191").size(), 1u);
}

}  // namespace
}  // namespace perfd::agent
