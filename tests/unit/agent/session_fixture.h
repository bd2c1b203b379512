// tests/unit/agent/session_fixture.h - a session whose kernel, clock and daemon are played: what it samples is scripted.
//
// Threads  FakeSampleSource: one session each; RecordingOutput: any.
#ifndef TESTS_UNIT_AGENT_SESSION_FIXTURE_H_
#define TESTS_UNIT_AGENT_SESSION_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/pipeline/session.h"
#include "core/base/mutex.h"
#include "tests/unit/agent/fake_code_source.h"
#include "tests/unit/procfs/fake_proc.h"

namespace perfd::agent {

// Says what the script tells it to say at each Drain.
class FakeSampleSource final : public SampleSource {
 public:
  struct Script {
    std::function<void(SampleSink&, int drain)> on_drain;
    absl::Status add_status;
    std::vector<int32_t> added, removed;
    double hz = 199;
    std::vector<int> lowered;  // after so many drains
    bool removal_spares = true;
  };
  explicit FakeSampleSource(Script& script) : script_(script) {}
  absl::Status AddProcess(int32_t pid) override {
    script_.added.push_back(pid);
    return script_.add_status;
  }
  void RemoveProcess(int32_t pid) override { script_.removed.push_back(pid); }
  bool removal_spares() const override { return script_.removal_spares; }
  void Drain(SampleSink& sink) override {
    if (script_.on_drain) script_.on_drain(sink, drains_);
    ++drains_;
  }
  absl::Status SetFrequency(double hz) override {
    if (hz < script_.hz) script_.lowered.push_back(drains_);
    script_.hz = hz;
    return absl::OkStatus();
  }
  SamplingSetup setup() const override {
    return {"cpu-clock", script_.hz, true, "per-thread", Provenance::kSampled};
  }
  int thread_count() const override { return static_cast<int>(script_.added.size()); }

 private:
  Script& script_;
  int drains_ = 0;
};

class RecordingOutput final : public SessionOutput {
 public:
  void OnUpdate(const SessionUpdate& item) override {
    MutexLock lock(&mutex);
    update.push_back(item);
    if (on_update) on_update(item);
  }
  absl::StatusOr<uint64_t> OnWindow(Window window) override {
    MutexLock lock(&mutex);
    if (refuse) return absl::ResourceExhaustedError("the spool is full");
    windows.push_back(std::move(window));
    return windows.size();
  }
  Accounting Total() const {
    Accounting total;
    for (const Window& window : windows) total += window.accounting;
    return total;
  }
  std::string AllNotices() const {
    std::string all;
    for (const SessionUpdate& item : update) {
      for (const Notice& notice : item.notices) all += notice.text + "\n";
    }
    return all;
  }

  Mutex mutex;
  std::vector<SessionUpdate> update;
  std::vector<Window> windows;
  bool refuse = false;  // every window
  std::function<void(const SessionUpdate&)> on_update;
};

class SessionTest : public testing::Test {
 protected:
  static constexpr int32_t kPid = 4711;

  SessionTest()
      : procfs_(proc_.root()),
        finder_(procfs_, "node1", absl::Milliseconds(200),
                [this](absl::Duration) {
                  if (on_probe_) on_probe_();
                }),
        resolver_(
            [](const RawModule& module,
               ModuleDetail) -> absl::StatusOr<std::unique_ptr<CodeSource>> {
              static int lookups = 0;
              return std::make_unique<FakeCodeSource>(std::vector{LoopyFunction()}, &lookups,
                                                      "id of " + module.key.path);
            },
            clock_) {
    AddRank(kPid);
    tools_.procfs = &procfs_;
    tools_.finder = &finder_;
    tools_.clock = &clock_;
    tools_.resolver = &resolver_;
    tools_.output = &output_;
    tools_.node = "node1";
    tools_.sleep = [this](int64_t ns) { clock_.now_ns += ns; };
    tools_.open_source = [this](const ProfileSpec&,
                                const Discovery&) -> absl::StatusOr<OpenedSource> {
      OpenedSource opened;
      opened.source = std::make_unique<FakeSampleSource>(script_);
      opened.prices = {
          .sample_ns = sample_cost_ns_, .start_ns = start_cost_ns_, .shared_cores = false};
      opened.accesses = accesses_;
      return opened;
    };
    tools_.claim_pids = [](const std::vector<int32_t>&) { return std::vector<int32_t>(); };
    request_.profile_id = "p-000001";
    request_.spec.target.pids = {kPid};
    request_.spec.duration_ns = request_.remaining_ns = 3 * kNsPerSecond;
    request_.requester = {.uid = 1000, .name = "user", .privileged = false};
  }

  void AddRank(int32_t pid, uint64_t user_ticks = 150) {
    FakeProcess app;
    app.pid = pid;
    app.environment = {{"PMIX_RANK", "0"}};
    app.user_ticks = user_ticks;
    proc_.AddProcess(app);
    proc_.Write(std::to_string(pid) + "/maps",
                "00400000-00500000 r-xp 00000000 08:01 77 /usr/bin/app\n");
  }

  static Sample At(uint64_t ip, int32_t pid = kPid) {
    Sample sample;
    sample.ip = ip;
    sample.pid = sample.tid = pid;
    sample.period = 5'000'000;
    return sample;
  }

  void Run() { Session(request_, tools_).Run(); }

  FakeProc proc_;
  ProcFs procfs_;
  std::function<void()> on_probe_;  // while processes with children are looked at
  RankFinder finder_;
  FakeClock clock_;
  RecordingOutput output_;
  FakeSampleSource::Script script_;
  double sample_cost_ns_ = 0;
  std::vector<perfd::MemoryEvent> accesses_;
  double start_cost_ns_ = 0;
  Resolver resolver_;
  SessionTools tools_;
  SessionRequest request_;
};

}  // namespace perfd::agent

#endif  // TESTS_UNIT_AGENT_SESSION_FIXTURE_H_
