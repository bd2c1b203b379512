#include "agent/pipeline/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "absl/synchronization/notification.h"
#include "agent/pipeline/session_table.h"
#include "tests/unit/agent/fake_code_source.h"
#include "tests/unit/procfs/fake_proc.h"

namespace perfd {
namespace {

using Phase = NodeProgress::Phase;
using testing::HasSubstr;

// Says what the script tells it to say at each Drain.
class FakeSampleSource final : public SampleSource {
 public:
  struct Script {
    std::function<void(SampleSink&, int drain)> on_drain;
    absl::Status add_status;
    std::vector<int32_t> added, removed;
    double hz = 199;
  };
  explicit FakeSampleSource(Script& script) : script_(script) {}
  absl::Status AddProcess(int32_t pid) override {
    script_.added.push_back(pid);
    return script_.add_status;
  }
  void RemoveProcess(int32_t pid) override { script_.removed.push_back(pid); }
  void Drain(SampleSink& sink) override {
    if (script_.on_drain) script_.on_drain(sink, drains_);
    ++drains_;
  }
  absl::Status SetFrequency(double hz) override {
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
  void OnNews(const SessionNews& item) override {
    absl::MutexLock lock(&mutex);
    news.push_back(item);
    if (on_news) on_news(item);
  }
  absl::StatusOr<uint64_t> OnWindow(Window window) override {
    absl::MutexLock lock(&mutex);
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
    for (const SessionNews& item : news) {
      for (const Notice& notice : item.notices) all += notice.text + "\n";
    }
    return all;
  }

  absl::Mutex mutex;
  std::vector<SessionNews> news;
  std::vector<Window> windows;
  bool refuse = false;  // every window
  std::function<void(const SessionNews&)> on_news;
};

class SessionTest : public testing::Test {
 protected:
  static constexpr int32_t kPid = 4711;

  SessionTest()
      : procfs_(proc_.root()),
        finder_(procfs_, "node1"),
        resolver_(
            [](const RawModule& module) -> absl::StatusOr<std::unique_ptr<CodeSource>> {
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
      return opened;
    };
    tools_.claim_pids = [](const std::vector<int32_t>&) { return std::vector<int32_t>(); };
    request_.profile_id = "p-000001";
    request_.spec.target.pids = {kPid};
    request_.spec.duration_ns = request_.remaining_ns = 3 * kNsPerSecond;
    request_.requester = {.uid = 1000, .name = "user", .privileged = false};
  }

  void AddRank(int32_t pid) {
    FakeProcess app;
    app.pid = pid;
    app.environment = {{"PMIX_RANK", "0"}};
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
  RankFinder finder_;
  FakeClock clock_;
  RecordingOutput output_;
  FakeSampleSource::Script script_;
  Resolver resolver_;
  SessionTools tools_;
  SessionRequest request_;
};

TEST_F(SessionTest, SamplesUntilTheTimeIsOverAndHandsOverAllWindows) {
  script_.on_drain = [](SampleSink& sink, int) { sink.OnSample(At(0x400144)); };
  Run();
  EXPECT_EQ(output_.news.back().phase, Phase::kFinished) << output_.AllNotices();
  EXPECT_EQ(output_.news.back().last_sequence, output_.windows.size());
  EXPECT_TRUE(output_.news.back().first_sample);
  EXPECT_GE(output_.windows.size(), 3u);
  int64_t covered_ns = 0;
  for (const Window& window : output_.windows) {
    covered_ns += window.duration_ns;
    EXPECT_EQ(window.profile_id, "p-000001");
    ASSERT_EQ(window.locations.size(), 1u);
    EXPECT_EQ(window.locations[0].category, Category::kLoop);
  }
  EXPECT_EQ(covered_ns, request_.remaining_ns);
  EXPECT_TRUE(output_.Total().Balanced());
  EXPECT_GE(output_.Total().kept, 30u);  // ten drains a second
}

TEST_F(SessionTest, CountsWhatIsNotItsOwnAndWhatWasLost) {
  script_.on_drain = [](SampleSink& sink, int drain) {
    if (drain != 2) return;
    sink.OnSample(At(0x400144, 9999));
    sink.OnSample(At(0xdead0000));
    sink.OnLost(7);
    sink.OnThrottled();
    sink.OnMalformed();
    sink.OnLateThread(kPid, 4712, 55);
    sink.OnLateThread(9999, 9999, 55);  // not ours
  };
  Run();
  const Accounting total = output_.Total();
  EXPECT_EQ(total.seen, 3u);
  EXPECT_EQ(total.kept, 1u);
  EXPECT_EQ(total.dropped[static_cast<size_t>(DropReason::kForeignProcess)], 1u);
  EXPECT_EQ(total.dropped[static_cast<size_t>(DropReason::kMalformed)], 1u);
  EXPECT_EQ(total.lost, 7u);
  EXPECT_EQ(total.throttled, 1u);
  EXPECT_EQ(total.late_threads, 1u);
  EXPECT_EQ(total.late_thread_cpu_ns, 55u);
  EXPECT_TRUE(total.Balanced());
}

TEST_F(SessionTest, ARankThatEndsEndsTheSessionAndIsSaid) {
  script_.on_drain = [this](SampleSink& sink, int drain) {
    sink.OnSample(At(0x400144));
    if (drain == 12) proc_.Remove(kPid);
  };
  Run();
  EXPECT_EQ(output_.news.back().phase, Phase::kFinished);
  EXPECT_THAT(output_.AllNotices(), HasSubstr("rank 0 (pid 4711) ended after"));
  EXPECT_THAT(script_.removed, testing::Contains(kPid));
  EXPECT_GE(output_.Total().kept, 12u);
  EXPECT_LT(clock_.now_ns, request_.remaining_ns);
}

// As with a ring per thread: the exec is told by the ring of one thread, the samples of the others come after it.
TEST_F(SessionTest, SamplesOfBeforeAnExecBelongToTheProgramOfTheirTime) {
  const auto at = [](uint64_t ip, uint64_t time_ns) {
    Sample sample = At(ip);
    sample.time_ns = time_ns;
    return sample;
  };
  script_.on_drain = [&, this](SampleSink& sink, int drain) {
    if (drain != 2) return;
    proc_.Write(std::to_string(kPid) + "/maps",
                "00400000-00500000 r-xp 00000000 08:01 78 /usr/bin/second\n");
    sink.OnTask({.kind = TaskEvent::Kind::kExec, .pid = kPid, .tid = kPid, .time_ns = 1000});
    for (int i = 0; i < 3; ++i) sink.OnSample(at(0x400144, 999));
    sink.OnSample(at(0x400144, 1000));
    sink.OnSample(
        at(0x600000, 999));  // never mapped: the new maps do not say what was there before
  };
  Run();
  std::map<std::string, uint64_t> samples;
  for (const Window& window : output_.windows) {
    for (const WindowRow& row : window.rows)
      samples[window.locations[row.location].module_path] += row.samples;
  }
  EXPECT_EQ(samples["/usr/bin/app"], 3u);
  EXPECT_EQ(samples["/usr/bin/second"], 1u);
  EXPECT_EQ(samples[""], 1u) << "[unmapped]";
}

TEST_F(SessionTest, ASuspendedSessionTellsWhatItLost) {
  output_.refuse = true;
  Session session(request_, tools_);
  script_.on_drain = [&](SampleSink& sink, int drain) {
    sink.OnSample(At(0x400144));
    if (drain == 3) session.Suspend();
  };
  session.Run();
  EXPECT_THAT(output_.AllNotices(), HasSubstr("samples of node node1 are in no window"));
  EXPECT_FALSE(output_.news.back().notices.empty());
  EXPECT_EQ(output_.news.back().phase, Phase::kSampling) << "another agent goes on";
}

TEST_F(SessionTest, ARankOfAnotherProfileIsRefused) {
  tools_.claim_pids = [](const std::vector<int32_t>& pids) { return pids; };
  Run();
  EXPECT_EQ(output_.news.back().phase, Phase::kFailed);
  EXPECT_THAT(output_.AllNotices(), HasSubstr("already measured by another profile"));
  EXPECT_TRUE(script_.added.empty());
}

TEST_F(SessionTest, ARankOfAnotherUserIsRefused) {
  request_.requester.uid = 1001;
  Run();
  EXPECT_EQ(output_.news.back().phase, Phase::kFailed);
  EXPECT_TRUE(script_.added.empty());
  EXPECT_TRUE(output_.windows.empty());
}

TEST_F(SessionTest, PerfForbiddenIsSaidWithTheRemedyOfTheSource) {
  script_.add_status = absl::PermissionDeniedError("set kernel.perf_event_paranoid to 2");
  Run();
  EXPECT_EQ(output_.news.back().phase, Phase::kFailed);
  EXPECT_THAT(output_.AllNotices(), HasSubstr("kernel.perf_event_paranoid"));
}

TEST_F(SessionTest, ASuspendedSessionHandsOverWindowsButTellsNoEnd) {
  Session session(request_, tools_);
  script_.on_drain = [&](SampleSink& sink, int drain) {
    sink.OnSample(At(0x400144));
    if (drain == 8) session.Suspend();
  };
  session.Run();
  EXPECT_GE(output_.Total().kept, 9u);
  for (const SessionNews& news : output_.news) EXPECT_LT(news.phase, Phase::kAnalyzing);
}

// Finds something out in the moment it begins.
class FakeExperimenter final : public Experimenter {
 public:
  explicit FakeExperimenter(std::vector<ExperimentRequest>* begun) : begun_(begun) {}
  void Begin(ExperimentRequest request) override {
    finished_ = request.plan.dry_run;
    LoopMeasurement loop;
    loop.loop_id = "loop";
    news_.measurements = {loop};
    begun_->push_back(std::move(request));
  }
  ExperimentNews Take() override { return std::exchange(news_, {}); }
  void End() override {}
  bool Finished() const override { return finished_; }
  std::optional<uint64_t> OriginalAddress(int32_t, uint64_t) const override { return {}; }

 private:
  std::vector<ExperimentRequest>* const begun_;
  ExperimentNews news_;
  bool finished_ = false;
};

class OrderedSessionTest : public SessionTest {
 protected:
  OrderedSessionTest() {
    tools_.make_experimenter = [this] { return std::make_unique<FakeExperimenter>(&begun_); };
    // Time passes when the resolver has done what it was asked.
    tools_.sleep = [this](int64_t ns) {
      absl::Notification done;
      if (resolver_.Post([&done](CodeIndex&) { done.Notify(); })) done.WaitForNotification();
      clock_.now_ns += ns;
    };
    script_.on_drain = [](SampleSink& sink, int) { sink.OnSample(At(0x400144)); };
  }

  void RunWith(bool dry_order) {
    Session session(request_, tools_);
    MeasureOrder order;
    order.profile_id = request_.profile_id;
    order.dry_run = dry_order;
    session.Measure(order);
    session.Run();
  }

  int64_t CoveredNs() const {
    int64_t covered_ns = 0;
    for (const Window& window : output_.windows) covered_ns += window.duration_ns;
    return covered_ns;
  }

  std::vector<ExperimentRequest> begun_;
};

TEST_F(OrderedSessionTest, ADryRunEndsWhenEverythingIsKnown) {
  request_.spec.dry_run = true;
  RunWith(true);
  ASSERT_EQ(begun_.size(), 1u);
  EXPECT_TRUE(begun_[0].plan.dry_run);
  EXPECT_LT(CoveredNs(), request_.remaining_ns / 2);
  EXPECT_EQ(output_.news.back().phase, Phase::kFinished);
  size_t measurements = 0;
  for (const Window& window : output_.windows) measurements += window.measurements.size();
  EXPECT_EQ(measurements, 1u);
}

TEST_F(OrderedSessionTest, AProfileGoesOnToItsEnd) {
  RunWith(false);
  ASSERT_EQ(begun_.size(), 1u);
  EXPECT_FALSE(begun_[0].plan.dry_run);
  EXPECT_EQ(CoveredNs(), request_.remaining_ns);
}

TEST_F(OrderedSessionTest, ADryRunThatNobodyMayAnswerEndsToo) {
  request_.spec.dry_run = true;
  tools_.make_experimenter = nullptr;
  RunWith(true);
  EXPECT_LT(CoveredNs(), request_.remaining_ns / 2);
  EXPECT_EQ(output_.news.back().phase, Phase::kFinished);
}

TEST_F(OrderedSessionTest, ADryRunStaysOneWhateverTheOrderSays) {
  request_.spec.dry_run = true;
  RunWith(false);
  ASSERT_EQ(begun_.size(), 1u);
  EXPECT_TRUE(begun_[0].plan.dry_run);
}

TEST_F(SessionTest, TheTableAnswersARepeatedStartOfAFinishedSessionInsteadOfMeasuringAgain) {
  SessionTable table(tools_, &output_);
  output_.on_news = [&](const SessionNews& news) { table.Remember(news); };
  SessionNews finished;
  finished.profile_id = request_.profile_id;
  finished.phase = Phase::kFinished;
  finished.last_sequence = 9;
  table.Remember(finished);
  table.Start(request_);
  ASSERT_EQ(output_.news.size(), 1u);
  EXPECT_EQ(output_.news[0].phase, Phase::kFinished);
  EXPECT_EQ(output_.news[0].last_sequence, 9u);
  EXPECT_EQ(table.running(), 0);
  table.EndAll();
}

TEST_F(SessionTest, OneSessionTooManyIsRefusedAndTheOthersGoOn) {
  absl::Notification go_on;
  tools_.sleep = [&](int64_t) { go_on.WaitForNotification(); };
  // Sessions run in threads of their own: each needs its own script.
  absl::Mutex mutex;
  std::vector<std::unique_ptr<FakeSampleSource::Script>> scripts;
  tools_.open_source = [&](const ProfileSpec&, const Discovery&) -> absl::StatusOr<OpenedSource> {
    absl::MutexLock lock(&mutex);
    scripts.push_back(std::make_unique<FakeSampleSource::Script>());
    OpenedSource opened;
    opened.source = std::make_unique<FakeSampleSource>(*scripts.back());
    return opened;
  };
  SessionTable table(tools_, &output_);
  output_.on_news = [&](const SessionNews& news) { table.Remember(news); };
  for (size_t i = 0; i <= SessionTable::kMaxSessions; ++i) {
    request_.profile_id = "p-" + std::to_string(i);
    request_.spec.target.pids = {static_cast<int32_t>(5000 + i)};
    AddRank(request_.spec.target.pids[0]);
    table.Start(request_);
  }
  EXPECT_EQ(table.running(), static_cast<int>(SessionTable::kMaxSessions));
  {
    absl::MutexLock lock(&output_.mutex);
    EXPECT_THAT(output_.AllNotices(), HasSubstr("already runs 16 profiles"));
  }
  for (size_t i = 0; i < SessionTable::kMaxSessions; ++i) table.Stop("p-" + std::to_string(i));
  go_on.Notify();
  table.EndAll();
  EXPECT_EQ(table.running(), 0);
}

}  // namespace
}  // namespace perfd
