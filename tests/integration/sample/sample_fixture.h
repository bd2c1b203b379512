// tests/integration/sample/sample_fixture.h - a source of real software events on a puppet, and a sink that keeps what they say.
//
// Bounds are generous because a virtual machine loses timer interrupts; they are still far from what a broken source would give.
// They widen by what the host took (host_taken.h).
#ifndef TESTS_INTEGRATION_SAMPLE_SAMPLE_FIXTURE_H_
#define TESTS_INTEGRATION_SAMPLE_SAMPLE_FIXTURE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "agent/sample/perf_sample_source.h"
#include "tests/integration/sample/host_taken.h"
#include "tests/integration/sample/puppet_process.h"

namespace perfd::agent {

constexpr uint64_t kTouched = 0x600000000000;  // where puppets touch memory
constexpr uint64_t kTouchedBytes = 256u << 20;

struct RecordingSink final : SampleSink {
  void OnSample(const Sample& s) override {
    ++samples;
    period_ns += s.period;
    if (s.time_ns < exec_ns) period_before_exec_ns += s.period;
    by_tid[s.tid] += s.period;
    ++counts[s.tid];
    pids.insert(s.pid);
    if (s.callchain.size() > 1) ++with_callers;
    if (!s.user.stack.empty() && s.user.registers.size() == 17) ++with_stack;
    if (s.callchain.size() > 1 && !s.kernel && s.callchain[0] == s.ip) ++chains_from_ip;
  }
  void OnAccess(const Sample& s) override {
    ++accesses;
    access_weight += s.period;
    access_tids.insert(s.tid);
    if (s.access.has_value() && s.access->source != MemorySource{}) ++with_source;
    if (s.access.has_value() && s.access->latency_cycles > 0) ++with_latency;
    const uint64_t address = s.access.has_value() ? s.access->address.value() : 0;
    if (address < kTouched || address >= kTouched + kTouchedBytes || s.kernel) ++strange_accesses;
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
  uint64_t accesses = 0, access_weight = 0, strange_accesses = 0, with_source = 0,
           with_latency = 0;  // strange: not to touched memory
  std::set<int32_t> pids, access_tids;
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
    ExpectWithin(static_cast<double>(ns), static_cast<double>(expected_ns), low, high, taken_.ns());
  }
  // Samples that were or would have been taken this often.
  void ExpectCount(uint64_t samples, double expected, double hz, double low = 0.6,
                   double high = 1.25) {
    ExpectWithin(static_cast<double>(samples), expected, low, high, taken_.samples(hz));
  }
  // From here on: what the host takes widens the bounds.
  void ForgetTaken() { taken_ = HostTaken(); }
  int CountTasks(TaskEvent::Kind kind) const {
    int n = 0;
    for (const TaskEvent& e : sink_.tasks) n += e.kind == kind ? 1 : 0;
    return n;
  }

  SystemClock clock_;
  std::unique_ptr<PerfSampleSource> source_;
  RecordingSink sink_;
  HostTaken taken_;
  bool ok_ = false;

 private:
  static void ExpectWithin(double value, double expected, double low, double high, double taken) {
    EXPECT_GT(value, low * expected - taken) << "the host took " << taken;
    EXPECT_LT(value, high * expected + taken) << "the host took " << taken;
  }
};

#define OPEN_OR_SKIP(...)                         \
  do {                                            \
    Open(__VA_ARGS__);                            \
    if (IsSkipped() || HasFatalFailure()) return; \
  } while (false)

}  // namespace perfd::agent

#endif  // TESTS_INTEGRATION_SAMPLE_SAMPLE_FIXTURE_H_
