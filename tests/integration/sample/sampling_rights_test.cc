// What happens without rights: each case runs in a forked child that gives them up. Needs root to have any to give up.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "agent/sample/perf_sample_source.h"
#include "agent/sample/ring/ring_budget.h"
#include "tests/integration/sample/host_taken.h"
#include "tests/integration/sample/puppet_process.h"

namespace perfd::agent {
namespace {

constexpr uint32_t kNobody = 65534;

// Runs `body` in a child and says whether it returned true within the puppet's alarm.
bool InChild(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::_exit(body() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// A child that became another user may not be looked at in /proc unless it says so.
bool BecomeNobody() {
  return ::setresgid(kNobody, kNobody, kNobody) == 0 &&
         ::setresuid(kNobody, kNobody, kNobody) == 0 && ::prctl(PR_SET_DUMPABLE, 1) == 0;
}

class SamplingRights : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to give rights up";
  }
};

TEST_F(SamplingRights, AnotherUsersProcessIsDenied) {
  PuppetProcess puppet({"wait"});
  EXPECT_TRUE(InChild([&] {
    if (!BecomeNobody()) return false;
    SystemClock clock;
    auto source = PerfSampleSource::Create({.event = "cpu-clock"}, ProcFs(), &clock);
    if (!source.ok()) return absl::IsPermissionDenied(source.status());
    const absl::Status status = (*source)->AddProcess(puppet.pid());
    return absl::IsPermissionDenied(status) && (*source)->thread_count() == 0 &&
           status.message().find("CAP_PERFMON") != absl::string_view::npos;
  }));
}

TEST_F(SamplingRights, ASmallerRingServesWhenLockedMemoryRunsOut) {
  EXPECT_TRUE(InChild([&] {
    const rlimit none{0, 0};
    if (::setrlimit(RLIMIT_MEMLOCK, &none) != 0 || !BecomeNobody()) return false;
    SystemClock clock;
    auto source =
        PerfSampleSource::Create({.event = "cpu-clock", .ring_bytes = 64u << 20}, ProcFs(), &clock);
    if (!source.ok()) return absl::IsPermissionDenied(source.status());
    return (*source)->AddProcess(::getpid()).ok() && (*source)->thread_count() == 1;
  }));
}

// As many threads as fit with small rings; with rings of the usual size, a quarter of them would.
TEST_F(SamplingRights, RingsShrinkUntilEveryThreadHasOne) {
  EXPECT_TRUE(InChild([&] {
    const rlimit none{0, 0};
    if (::setrlimit(RLIMIT_MEMLOCK, &none) != 0 || !BecomeNobody()) return false;
    const uint64_t room = LockableBytes(ProcFs());
    if (room == kUnlimitedBytes) return true;
    const auto count = static_cast<int>(std::min<uint64_t>(room / 2 / (2 * PageBytes()), 200));
    std::atomic<bool> over = false;
    std::vector<std::thread> threads;
    threads.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) threads.emplace_back([&] { over.wait(false); });
    SystemClock clock;
    auto source = PerfSampleSource::Create({.event = "cpu-clock"}, ProcFs(), &clock);
    absl::Status added = source.status();
    if (source.ok()) added = (*source)->AddProcess(::getpid());
    const bool all = added.ok() && (*source)->thread_count() == count + 1;
    over = true;
    over.notify_all();
    for (std::thread& thread : threads) thread.join();
    return all || absl::IsPermissionDenied(added);
  }));
}

TEST_F(SamplingRights, TheSoftLimitOfDescriptorsIsRaised) {
  EXPECT_TRUE(InChild([&] {
    const rlimit tight{8, 256};
    if (::setrlimit(RLIMIT_NOFILE, &tight) != 0) return false;
    while (::dup(0) >= 0) {
    }
    SystemClock clock;
    auto opened = PerfSampleSource::Create({.event = "cpu-clock"}, ProcFs(), &clock);
    return opened.ok();
  }));
}

TEST_F(SamplingRights, NoDescriptorsAtAllIsResourceExhausted) {
  EXPECT_TRUE(InChild([&] {
    const rlimit tight{8, 8};
    if (::setrlimit(RLIMIT_NOFILE, &tight) != 0) return false;
    while (::dup(0) >= 0) {
    }
    SystemClock clock;
    auto opened = PerfSampleSource::Create({.event = "cpu-clock"}, ProcFs(), &clock);
    return absl::IsResourceExhausted(opened.status());
  }));
}

struct CountingSink final : SampleSink {
  void OnSample(const Sample& s) override { ++by_pid[s.pid]; }
  void OnMapping(const MappingEvent&) override {}
  void OnTask(const TaskEvent&) override {}
  void OnLost(uint64_t records) override { lost += records; }
  void OnThrottled() override {}
  void OnMalformed() override { ++malformed; }
  void OnLateThread(int32_t, int32_t, uint64_t) override { ++late; }

  std::map<int32_t, int> by_pid;
  uint64_t lost = 0;
  int malformed = 0, late = 0;
};

// A cgroup of our own below the unified hierarchy, removed at the end.
class ScratchCgroup {
 public:
  ScratchCgroup() {
    const auto mounts = ProcFs().Mounts();
    for (const MountEntry& mount : *mounts) {
      if (mount.type == "cgroup2") {
        directory_ = mount.directory + "/perfd-test-" + std::to_string(::getpid());
      }
    }
    if (!directory_.empty() && ::mkdir(directory_.c_str(), 0755) != 0) directory_.clear();
  }
  ~ScratchCgroup() {
    if (!directory_.empty()) ::rmdir(directory_.c_str());
  }
  bool Add(int pid) const {
    std::ofstream out(directory_ + "/cgroup.procs");
    out << pid << std::flush;
    return out.good();
  }
  const std::string& directory() const { return directory_; }

 private:
  std::string directory_;
};

TEST_F(SamplingRights, CgroupEventsSampleTheGroupAndNobodyElse) {
  ScratchCgroup group;
  if (group.directory().empty()) GTEST_SKIP() << "no writable unified cgroup hierarchy";
  SystemClock clock;
  CountingSink sink;
  const HostTaken taken;
  {
    PuppetProcess inside({"wait", "threads:2:200", "say:done"});
    PuppetProcess outside({"wait", "spin:200", "say:done"});
    ASSERT_TRUE(group.Add(inside.pid()));
    auto source = PerfSampleSource::Create(
        {.event = "cpu-clock", .frequency_hz = 499, .cgroup = group.directory()}, ProcFs(), &clock);
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_EQ((*source)->setup().method, "cgroup");
    EXPECT_FALSE((*source)->removal_spares()) << "the group's events go on";
    ASSERT_TRUE((*source)->AddProcess(inside.pid()).ok());
    EXPECT_EQ((*source)->thread_count(), 1);
    inside.Go();
    outside.Go();
    EXPECT_TRUE(inside.Heard());
    EXPECT_TRUE(outside.Heard());
    (*source)->Drain(sink);
    EXPECT_GT(sink.by_pid[inside.pid()], 100 - taken.samples(499));
    // A timer that fires in the middle of a context switch names the next task: a stray sample is the sink's to drop.
    for (const auto& [pid, samples] : sink.by_pid) {
      if (pid != inside.pid()) {
        EXPECT_LT(samples, 5) << "process " << pid << ", the other puppet is " << outside.pid();
      }
    }
    EXPECT_EQ(sink.late, 0);
    EXPECT_EQ(sink.malformed, 0);
    inside.Wait();
  }
}

TEST_F(SamplingRights, WhatACgroupsRingsLostIsReportedAtTheEnd) {
  ScratchCgroup group;
  if (group.directory().empty()) GTEST_SKIP() << "no writable unified cgroup hierarchy";
  SystemClock clock;
  CountingSink sink;
  const HostTaken taken;
  PuppetProcess inside({"wait", "spin:400", "say:done", "wait"});
  ASSERT_TRUE(group.Add(inside.pid()));
  auto source = PerfSampleSource::Create(
      {.event = "cpu-clock", .frequency_hz = 4999, .cgroup = group.directory(), .ring_bytes = 4096},
      ProcFs(), &clock);
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_EQ((*source)->setup().method, "cgroup");
  inside.Go();
  EXPECT_TRUE(inside.Heard());
  (*source)->Drain(sink);
  (*source)->ReportLost(sink);
  const uint64_t lost = sink.lost;
  EXPECT_GT(static_cast<double>(lost), 100 - taken.samples(4999))
      << "a page holds some hundred records";
  (*source)->Drain(sink);
  (*source)->ReportLost(sink);
  EXPECT_LE(sink.lost, lost + 5) << "each loss once";
  inside.Go();
  inside.Wait();
}

TEST_F(SamplingRights, AProcessThatBecomesAnothersIsNotSampledAnyMore) {
  SystemClock clock;
  CountingSink sink;
  PuppetProcess puppet({"wait", "setuid:65534", "say:other", "spin:1500", "say:done", "wait"});
  auto source =
      PerfSampleSource::Create({.event = "cpu-clock", .frequency_hz = 499}, ProcFs(), &clock);
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_TRUE((*source)->AddProcess(puppet.pid()).ok());
  puppet.Go();
  EXPECT_TRUE(puppet.Heard());
  ::usleep(1'100'000);  // a rescan is due
  (*source)->Drain(sink);
  EXPECT_EQ((*source)->thread_count(), 0);
  EXPECT_TRUE(puppet.Heard());
  (*source)->Drain(sink);
  const int samples = sink.by_pid[puppet.pid()];
  ::usleep(100'000);
  (*source)->Drain(sink);
  EXPECT_EQ(sink.by_pid[puppet.pid()], samples);
  puppet.Go();
}

TEST_F(SamplingRights, ACgroupThatCannotBeUsedFallsBackToThreads) {
  SystemClock clock;
  auto source =
      PerfSampleSource::Create({.event = "cpu-clock", .cgroup = "/nonexistent"}, ProcFs(), &clock);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->setup().method, "per-thread");
}

}  // namespace
}  // namespace perfd::agent
