// Real software events on a puppet. Truth: samples x period == CPU time used while sampled. Bounds are generous because
// a virtual machine loses timer interrupts; they are still far from what a broken source would give.
#include "agent/sample/perf_sample_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "agent/sample/sample_cost.h"
#include "agent/sample/switch_cost.h"
#include "tests/integration/sample/puppet_process.h"

namespace perfd {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::Ne;

struct RecordingSink final : SampleSink {
  void OnSample(const Sample& s) override {
    ++samples;
    period_ns += s.period;
    if (s.time_ns < exec_ns) period_before_exec_ns += s.period;
    by_tid[s.tid] += s.period;
    ++counts[s.tid];
    pids.insert(s.pid);
    if (s.callchain.size() > 1) ++with_callers;
    if (!s.user_stack.empty() && s.user_registers.size() == 17) ++with_stack;
    if (s.callchain.size() > 1 && !s.kernel && s.callchain[0] == s.ip) ++chains_from_ip;
  }
  void OnMapping(const MappingEvent& e) override { mappings.push_back(e); }
  void OnTask(const TaskEvent& e) override {
    tasks.push_back(e);
    if (e.kind == TaskEvent::Kind::kExec) exec_ns = e.time_ns;
    if (on_task) on_task(e);
  }
  void OnLost(uint64_t records) override { lost += records; }
  void OnThrottled() override { ++throttled; }
  void OnMalformed() override { ++malformed; }
  void OnLateThread(int32_t, int32_t tid, uint64_t cpu_ns) override { late[tid] += cpu_ns; }

  uint64_t samples = 0, period_ns = 0, with_callers = 0, with_stack = 0, chains_from_ip = 0;
  uint64_t exec_ns = 0, period_before_exec_ns = 0;  // counted once the exec has been heard of
  uint64_t lost = 0, throttled = 0, malformed = 0;
  std::map<int32_t, uint64_t> by_tid, counts, late;
  std::set<int32_t> pids;
  std::vector<MappingEvent> mappings;
  std::vector<TaskEvent> tasks;
  std::function<void(const TaskEvent&)> on_task;
};

constexpr uint64_t kMs = 1'000'000;

class PerfSampleSourceTest : public testing::Test {
 protected:
  void Open(SamplingOptions options = {}) {
    if (options.event == "auto") options.event = "cpu-clock";
    auto source = PerfSampleSource::Create(options, ProcFs(), &clock_);
    if (absl::IsPermissionDenied(source.status())) GTEST_SKIP() << source.status();
    ASSERT_TRUE(source.ok()) << source.status();
    source_ = *std::move(source);
  }
  // Drains as the agent does until the puppet has said its next word.
  void DrainUntilHeard(PuppetProcess& puppet) {
    std::atomic<bool> heard = false;
    std::thread listener([&] {
      ok_ = puppet.Heard();
      heard = true;
    });
    while (!heard) {
      source_->Drain(sink_);
      ::usleep(10'000);
    }
    listener.join();
    ASSERT_TRUE(ok_);
    source_->Drain(sink_);
  }
  void ExpectNear(uint64_t ns, uint64_t expected_ns, double low = 0.6, double high = 1.25) {
    EXPECT_GT(static_cast<double>(ns), low * static_cast<double>(expected_ns));
    EXPECT_LT(static_cast<double>(ns), high * static_cast<double>(expected_ns));
  }
  int CountTasks(TaskEvent::Kind kind) const {
    int n = 0;
    for (const TaskEvent& e : sink_.tasks) n += e.kind == kind ? 1 : 0;
    return n;
  }

  SystemClock clock_;
  std::unique_ptr<PerfSampleSource> source_;
  RecordingSink sink_;
  bool ok_ = false;
};

#define OPEN_OR_SKIP(...)                         \
  do {                                            \
    Open(__VA_ARGS__);                            \
    if (IsSkipped() || HasFatalFailure()) return; \
  } while (false)

TEST_F(PerfSampleSourceTest, SamplesAsMuchAsTheProcessRuns) {
  PuppetProcess puppet({"wait", "spin:500", "say:done", "wait"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  EXPECT_EQ(source_->thread_count(), 1);
  puppet.Go();
  DrainUntilHeard(puppet);
  ExpectNear(sink_.period_ns, 500 * kMs);
  ExpectNear(sink_.samples, 250);
  EXPECT_EQ(sink_.pids, std::set<int32_t>{puppet.pid()});
  EXPECT_EQ(sink_.malformed, 0u);
  EXPECT_EQ(sink_.lost, 0u);
  EXPECT_TRUE(sink_.late.empty()) << "what ran before AddProcess is not late";
  EXPECT_EQ(source_->setup().event, source_->setup().kernel_included ? "cpu-clock" : "cpu-clock:u");
  EXPECT_EQ(source_->setup().method, "per-thread");
  puppet.Go();
  EXPECT_EQ(puppet.Wait(), 0);
  source_->Drain(sink_);
  source_->Drain(sink_);
  EXPECT_EQ(source_->thread_count(), 0);
  EXPECT_EQ(CountTasks(TaskEvent::Kind::kExited), 1);
}

TEST_F(PerfSampleSourceTest, CoversThreadsThatStartLater) {
  PuppetProcess puppet({"wait", "threads:3:400", "say:done"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  puppet.Go();
  DrainUntilHeard(puppet);
  EXPECT_EQ(CountTasks(TaskEvent::Kind::kThreadStarted), 3);
  EXPECT_LE(sink_.late.size(), 3u)
      << "a thread that did not run before its ring was there is not late";
  uint64_t late_ns = 0;
  for (const auto& [tid, ns] : sink_.late) {
    late_ns += ns;
    EXPECT_LT(ns, 300 * kMs) << "opened long before it ended";
    EXPECT_GT(sink_.by_tid[tid], 50 * kMs);
  }
  // What was sampled and what was reported as late is all there was.
  ExpectNear(sink_.period_ns + late_ns, 1200 * kMs);
}

TEST_F(PerfSampleSourceTest, ThreadsAreKnownBeforeAndRemovedAfter) {
  PuppetProcess puppet({"threads:4:200", "say:done", "wait"});
  OPEN_OR_SKIP({});
  while (ProcFs().Threads(puppet.pid())->size() != 5) ::usleep(1000);
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  EXPECT_EQ(source_->thread_count(), 5);
  DrainUntilHeard(puppet);
  source_->Drain(sink_);
  EXPECT_EQ(source_->thread_count(), 1);
  EXPECT_EQ(CountTasks(TaskEvent::Kind::kExited), 4);
}

TEST_F(PerfSampleSourceTest, FollowsExecOfTheLeaderAndOfAThread) {
  for (const char* step : {"exec", "texec:100"}) {
    sink_ = {};
    PuppetProcess puppet({"wait", step, "spin:300", "say:done", "wait"});
    OPEN_OR_SKIP({.frequency_hz = 499});
    ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
    puppet.Go();
    DrainUntilHeard(puppet);
    source_->Drain(sink_);
    EXPECT_GE(CountTasks(TaskEvent::Kind::kExec), 1) << step;
    ExpectNear(sink_.by_tid[puppet.pid()], 300 * kMs);
    EXPECT_EQ(source_->thread_count(), 1) << step;
    EXPECT_THAT(sink_.mappings, Contains(AllOf(Field(&MappingEvent::path, PERFD_SAMPLE_PUPPET),
                                               Field(&MappingEvent::inode, Ne(0u)))))
        << step;
    puppet.Go();
    EXPECT_EQ(puppet.Wait(), 0);
  }
}

// Both programs and the exec between them lie in the ring: the exec is told first, with the time that divides them.
TEST_F(PerfSampleSourceTest, AnExecIsToldBeforeTheSamplesThatItDivides) {
  PuppetProcess puppet({"wait", "spin:200", "exec", "spin:300", "say:done", "wait"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  puppet.Go();
  ASSERT_TRUE(puppet.Heard());
  source_->Drain(sink_);
  ExpectNear(sink_.period_before_exec_ns, 200 * kMs);
  ExpectNear(sink_.period_ns - sink_.period_before_exec_ns, 300 * kMs);
}

// The thread is too young to have a ring when it becomes the leader.
TEST_F(PerfSampleSourceTest, FollowsExecOfAThreadThatNobodySawStart) {
  PuppetProcess puppet({"wait", "texec:0", "spin:400", "say:done", "wait"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  puppet.Go();
  DrainUntilHeard(puppet);
  EXPECT_GE(CountTasks(TaskEvent::Kind::kExec), 1);
  EXPECT_EQ(source_->thread_count(), 1);
  EXPECT_GT(sink_.by_tid[puppet.pid()], 100 * kMs);
  ExpectNear(sink_.by_tid[puppet.pid()] + sink_.late[puppet.pid()], 400 * kMs);
}

TEST_F(PerfSampleSourceTest, AForkedProcessCanBeAddedFromTheSink) {
  PuppetProcess puppet({"wait", "fork:400", "say:done"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  int32_t child = 0;
  sink_.on_task = [&](const TaskEvent& e) {
    if (e.kind != TaskEvent::Kind::kProcessForked) return;
    child = e.pid;
    EXPECT_EQ(e.parent_pid, puppet.pid());
    const absl::Status added = source_->AddProcess(e.pid);
    EXPECT_TRUE(added.ok()) << added;
  };
  puppet.Go();
  DrainUntilHeard(puppet);
  ASSERT_NE(child, 0);
  EXPECT_THAT(sink_.pids, Contains(child));
  ExpectNear(sink_.by_tid[child] + sink_.late[child], 400 * kMs);
}

TEST_F(PerfSampleSourceTest, ChangesTheFrequencyOfRunningEvents) {
  PuppetProcess puppet({"wait", "spin:400", "say:a", "wait", "spin:400", "say:b"});
  OPEN_OR_SKIP({.frequency_hz = 97});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  puppet.Go();
  DrainUntilHeard(puppet);
  const uint64_t slow = sink_.samples;
  ASSERT_TRUE(source_->SetFrequency(997).ok());
  EXPECT_EQ(source_->setup().frequency_hz, 997);
  puppet.Go();
  DrainUntilHeard(puppet);
  ExpectNear(slow, 39, 0.5, 1.4);
  ExpectNear(sink_.samples - slow, 399, 0.5, 1.4);
  // Whatever the rate was when they were taken, they stand for all of the time.
  ExpectNear(sink_.period_ns, 800 * kMs);
}

TEST_F(PerfSampleSourceTest, RestsToBecomeSlowerThanItBegan) {
  PuppetProcess puppet({"wait", "spin:2000", "say:a", "wait"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  ASSERT_TRUE(source_->SetFrequency(499.0 / 4).ok());
  EXPECT_DOUBLE_EQ(source_->setup().frequency_hz, 499.0 / 4);
  puppet.Go();
  DrainUntilHeard(puppet);
  ExpectNear(sink_.samples, 250, 0.5, 1.4);
  EXPECT_NEAR(static_cast<double>(sink_.period_ns) / static_cast<double>(sink_.samples), 4e9 / 499,
              1e5)
      << "a sample stands for the rest around it too";
  ASSERT_TRUE(source_->SetFrequency(499).ok());
}

// What was on must not go on until the next slot: each of its samples would stand for half a second.
TEST_F(PerfSampleSourceTest, RestsAtOnce) {
  PuppetProcess puppet({"wait", "spin:300", "say:a", "wait", "spin:300", "say:b", "wait"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(source_->SetFrequency(499).ok());
    source_->Drain(sink_);
    const uint64_t before = sink_.samples;
    ASSERT_TRUE(source_->SetFrequency(1).ok());
    puppet.Go();
    ASSERT_TRUE(puppet.Heard());
    source_->Drain(sink_);
    least = std::min(least, sink_.samples - before);
  }
  // One slot in 500 is on, and then there are some 150.
  EXPECT_EQ(least, 0u);
}

// Until it goes there is room for one more descriptor.
class OneDescriptorLeft {
 public:
  OneDescriptorLeft() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit tight = {256, 256};
    setrlimit(RLIMIT_NOFILE, &tight);
    for (int fd = open("/dev/null", O_RDONLY); fd >= 0; fd = open("/dev/null", O_RDONLY))
      fds_.push_back(fd);
    if (fds_.empty()) return;
    close(fds_.back());
    fds_.pop_back();
  }
  ~OneDescriptorLeft() {
    for (const int fd : fds_) close(fd);
    setrlimit(RLIMIT_NOFILE, &before_);
  }

 private:
  rlimit before_ = {};
  std::vector<int> fds_;
};

TEST_F(PerfSampleSourceTest, AThreadThatCannotRestDoesNotKeepTheOthersFromIt) {
  if (geteuid() != 0)
    GTEST_SKIP() << "SKIPPED: the hard limit of descriptors could not be put back";
  PuppetProcess first({"wait", "spin:1000", "say:a", "wait"});
  PuppetProcess second({"wait", "spin:1000", "say:a", "wait"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(first.pid()).ok());
  ASSERT_TRUE(source_->AddProcess(second.pid()).ok());
  {
    const OneDescriptorLeft tight;
    ASSERT_TRUE(source_->SetFrequency(499.0 / 4).ok());
    for (int i = 0; i < 100 && source_->on_share() < 0.6; ++i) {
      source_->Drain(sink_);
      ::usleep(20'000);
    }
  }
  EXPECT_DOUBLE_EQ(source_->on_share(), 0.5 + 0.5 / 4) << "one of two is always on";
  first.Go();
  second.Go();
  DrainUntilHeard(first);
  DrainUntilHeard(second);
  // Each a quarter of 499, and each sample stands for as much, whether its event rests or is slower.
  ExpectNear(sink_.counts[first.pid()], 125, 0.4, 1.6);
  ExpectNear(sink_.counts[second.pid()], 125, 0.4, 1.6);
  EXPECT_EQ(sink_.period_ns / sink_.samples, uint64_t{4'000'000'000} / 499);
  ASSERT_TRUE(source_->SetFrequency(499).ok());
  EXPECT_DOUBLE_EQ(source_->on_share(), 1);
}

// Nearly all the time at rest: what explains samples arrives all the same.
TEST_F(PerfSampleSourceTest, SeesEveryThreadForkAndExecAtRest) {
  PuppetProcess puppet({"wait", "threads:3:50", "fork:50", "exec", "spin:20", "say:a", "wait"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  ASSERT_TRUE(source_->SetFrequency(1).ok());
  for (int i = 0; i < 3; ++i) {
    source_->Drain(sink_);
    ::usleep(110'000);
  }
  puppet.Go();
  DrainUntilHeard(puppet);
  EXPECT_EQ(CountTasks(TaskEvent::Kind::kThreadStarted), 3);
  EXPECT_EQ(CountTasks(TaskEvent::Kind::kProcessForked), 1);
  EXPECT_EQ(CountTasks(TaskEvent::Kind::kExec), 1);
  EXPECT_FALSE(sink_.mappings.empty());
  EXPECT_LT(sink_.samples, 40u) << "all of it at the full rate is 100";
}

TEST_F(PerfSampleSourceTest, ASwitchOfASampledThreadHasACost) {
  OPEN_OR_SKIP({});
  const absl::StatusOr<double> cost = MeasureSwitchCost(source_->event());
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_GT(*cost, 20);
  EXPECT_LT(*cost, 200'000);
}

TEST_F(PerfSampleSourceTest, RemovedProcessesStillDeliverWhatWasWritten) {
  PuppetProcess puppet({"wait", "spin:300", "say:a", "spin:300", "say:b"});
  OPEN_OR_SKIP({.frequency_hz = 499});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  puppet.Go();
  ASSERT_TRUE(puppet.Heard());
  source_->RemoveProcess(puppet.pid());
  EXPECT_EQ(source_->thread_count(), 0);
  ASSERT_TRUE(puppet.Heard());
  source_->Drain(sink_);
  ExpectNear(sink_.period_ns, 300 * kMs);
  const uint64_t before = sink_.samples;
  source_->Drain(sink_);
  EXPECT_EQ(sink_.samples, before);
}

// The ring is full from early on to the very end: no LOST record ever has room.
TEST_F(PerfSampleSourceTest, OverrunsAreCountedAlsoAtTheEnd) {
  PuppetProcess puppet({"wait", "spin:600"});
  OPEN_OR_SKIP({.frequency_hz = 1999, .ring_bytes = 4096});
  const int pid = puppet.pid();
  ASSERT_TRUE(source_->AddProcess(pid).ok());
  puppet.Go();
  EXPECT_EQ(puppet.Wait(), 0);
  source_->RemoveProcess(pid);
  source_->Drain(sink_);
  EXPECT_GT(sink_.samples, 10u);
  EXPECT_LT(sink_.samples, 100u) << "a page holds no more";
  ExpectNear(sink_.samples + sink_.lost, 1200, 0.4);
  const uint64_t lost = sink_.lost;
  source_->Drain(sink_);
  EXPECT_EQ(sink_.lost, lost) << "counted once";
}

TEST_F(PerfSampleSourceTest, OverrunsInTheMiddleAreCountedOnce) {
  PuppetProcess puppet({"wait", "spin:300", "say:a", "wait", "spin:100"});
  OPEN_OR_SKIP({.frequency_hz = 1999, .ring_bytes = 4096});
  const int pid = puppet.pid();
  ASSERT_TRUE(source_->AddProcess(pid).ok());
  puppet.Go();
  ASSERT_TRUE(puppet.Heard());
  source_->Drain(sink_);
  puppet.Go();
  EXPECT_EQ(puppet.Wait(), 0);
  source_->RemoveProcess(pid);
  source_->Drain(sink_);
  source_->Drain(sink_);
  EXPECT_GT(sink_.lost, 100u);
  ExpectNear(sink_.samples + sink_.lost, 800, 0.4);
}

TEST_F(PerfSampleSourceTest, CallPathsByFramePointerAndByStackCopy) {
  PuppetProcess puppet({"wait", "spin:200", "say:a", "wait"});
  OPEN_OR_SKIP({.frequency_hz = 499, .callpaths = CallPaths::kFramePointer});
  ASSERT_TRUE(source_->AddProcess(puppet.pid()).ok());
  puppet.Go();
  DrainUntilHeard(puppet);
  EXPECT_GT(sink_.with_callers, sink_.samples / 2);
  EXPECT_GT(sink_.chains_from_ip, sink_.samples / 2);
  PuppetProcess other({"wait", "spin:200", "say:a", "wait"});
  sink_ = {};
  OPEN_OR_SKIP({.frequency_hz = 499, .callpaths = CallPaths::kDwarf});
  ASSERT_TRUE(source_->AddProcess(other.pid()).ok());
  other.Go();
  DrainUntilHeard(other);
  EXPECT_GT(sink_.with_stack, sink_.samples / 2);
  EXPECT_EQ(sink_.malformed, 0u);
}

TEST_F(PerfSampleSourceTest, AMissingProcessIsNotFound) {
  OPEN_OR_SKIP({});
  PuppetProcess puppet({});
  const int pid = puppet.pid();
  puppet.Wait();
  EXPECT_TRUE(absl::IsNotFound(source_->AddProcess(pid)));
  EXPECT_EQ(source_->thread_count(), 0);
}

TEST_F(PerfSampleSourceTest, OneSampleHasACost) {
  OPEN_OR_SKIP({});
  const auto cost = MeasureSampleCost(source_->event());
  ASSERT_TRUE(cost.ok()) << cost.status();
  RecordProperty("sample_cost_ns", static_cast<int>(*cost));
  EXPECT_GT(*cost, 100u);
  EXPECT_LT(*cost, 1'000'000u);
}

}  // namespace
}  // namespace perfd
