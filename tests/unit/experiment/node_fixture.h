// tests/unit/experiment/node_fixture.h - a NodeExperimenter whose ranks have fake injectors and whose time passes with every look.
//
// Shape    AddRank (up to three), then Begin, AwaitEnd, News. EndAt: End is called from elsewhere when an injector is asked for that.
// Threads  the injectors are called from the experimenter's threads; what they did is read after AwaitEnd.
#ifndef TESTS_UNIT_EXPERIMENT_NODE_FIXTURE_H_
#define TESTS_UNIT_EXPERIMENT_NODE_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "agent/experiment/node_experimenter.h"
#include "agent/experiment/preparation.h"
#include "core/base/clock.h"
#include "core/base/notification.h"
#include "tests/unit/experiment/fake_injector.h"
#include "tests/unit/experiment/own_loop.h"

namespace perfd::agent {

// Each look takes some time, so that everything that waits for a time ends.
class SteppingClock final : public Clock {
 public:
  int64_t MonotonicNs() const override {
    if (on_probe) on_probe();
    return now_ns.fetch_add(step_ns) + step_ns;
  }
  int64_t UnixNs() const override { return 1'700'000'000 * kNsPerSecond; }
  mutable std::atomic<int64_t> now_ns = SystemClock().MonotonicNs();
  std::atomic<int64_t> step_ns = kNsPerMs;
  std::function<void()> on_probe;
};

struct FakeRank {
  RankLoops places;
  FakeTruth truth;
  FakeLog log;
  absl::Status open_status;
  InjectorOptions options;  // it was opened with
  int opens = 0;
};

class NodeExperimenterTest : public ::testing::Test {
 protected:
  NodeExperimenterTest()
      : disable_file_(absl::StrCat(::testing::TempDir(), "/disable-", getpid())) {
    std::filesystem::remove(disable_file_);
    journal_ = *Journal::Make(absl::StrCat(::testing::TempDir(), "/journals-", getpid()));
    request_.node = "n1";
    request_.requester = "alice";
    request_.plan.profile_id = "p1";
    request_.plan.variants = {"LS", "FP", "DL1"};
    request_.plan.repetitions = 9;
    request_.plan.budget.overhead_ratio = 0.5;
    request_.plan.loops = {OwnTarget(0), OwnTarget(1)};
    threads_before_ = Threads();
  }
  ~NodeExperimenterTest() override {
    std::filesystem::remove(disable_file_);
    journal_->RemoveEmpty();
  }

  void SetUp() override {
    if (MeasureTicksPerNs() <= 0) GTEST_SKIP() << "the time stamp counter is not invariant here";
  }

  FakeRank& AddRank() {
    const auto number = static_cast<int32_t>(ranks_.size());
    FakeRank& rank = ranks_.emplace_back();
    rank.places.rank = RankOf(sleepers_[ranks_.size() - 1].pid(), number);
    for (size_t i = 0; i < request_.plan.loops.size(); ++i)
      rank.places.loops.push_back(OwnPlace(static_cast<int>(i)));
    return rank;
  }

  void Begin() {
    for (const FakeRank& rank : ranks_) request_.ranks.push_back(rank.places);
    request_.begin_ns = clock_.now_ns;
    request_.end_ns = request_.begin_ns + duration_ns_;
    ExperimenterOptions options;
    options.journal = &*journal_;
    options.disable_file = disable_file_;
    options.allowed = &allowed_;
    options.clock = &clock_;
    options.allow_recovery = allow_recovery_;
    options.sleep = sleep_;
    options.open_injector = [this](const RankInfo& rank, InjectorOptions injector) {
      return Open(rank, injector);
    };
    experimenter_ = std::make_unique<NodeExperimenter>(std::move(options));
    experimenter_->Begin(request_);
    begun_.Notify();
  }

  // Until it has nothing to do any more.
  void AwaitEnd() {
    const int64_t deadline = SystemClock().MonotonicNs() + 30 * kNsPerSecond;
    while (Threads() > threads_before_) {
      ASSERT_LT(SystemClock().MonotonicNs(), deadline) << "does not end";
      absl::SleepFor(absl::Milliseconds(1));
    }
    if (ender_made_) ender_.join();
    experimenter_->End();
  }

  ExperimentUpdate Run() {
    Begin();
    AwaitEnd();
    return experimenter_->Drain();
  }

  // When an injector is asked for the nth time for that, End is under way before it answers.
  void EndAt(FakeRank& rank, const std::string& call, int nth = 1) {
    rank.truth.on_call = [this, call, nth, seen = 0](const std::string& name) mutable {
      if (name == call && ++seen == nth) EndElsewhere();
    };
  }

  void EndElsewhere() {
    ended_ = true;
    std::atomic<pid_t> tid = 0;
    ender_ = std::thread([this, &tid] {
      begun_.WaitForNotification();
      tid = static_cast<pid_t>(syscall(SYS_gettid));
      experimenter_->End();
    });
    while (tid == 0) std::this_thread::yield();
    // It sleeps nowhere but in the joining, when the order to stop is out.
    while (StateOf(tid) != 'S') std::this_thread::yield();
    ender_made_ = true;
  }

  void CreateDisableFile() const { std::ofstream(disable_file_) << "no\n"; }

  static std::vector<LoopMeasurement> Of(const ExperimentUpdate& update, const FakeRank& rank) {
    std::vector<LoopMeasurement> found;
    for (const LoopMeasurement& loop : update.measurements) {
      if (loop.pid == rank.places.rank.pid) found.push_back(loop);
    }
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return a.loop_id < b.loop_id; });
    return found;
  }

  static void ExpectNothingLeft(const FakeRank& rank) {
    EXPECT_FALSE(rank.log.installed);
    EXPECT_THAT(rank.log.jumps, ::testing::IsEmpty());
    if (rank.log.installs > 0) {
      EXPECT_EQ(rank.log.calls.back(), "uninstall");
    }
  }

  static int64_t Calls(const FakeRank& rank, const std::string& name) {
    return std::count(rank.log.calls.begin(), rank.log.calls.end(), name);
  }

  static size_t Threads() {
    using Folder = std::filesystem::directory_iterator;
    return static_cast<size_t>(std::distance(Folder("/proc/self/task"), Folder()));
  }

  SteppingClock clock_;
  ExperimentRequest request_;
  bool allow_recovery_ = false;
  std::function<void(int64_t ns)> sleep_;  // empty: really sleeps
  int64_t duration_ns_ = 1000 * kNsPerSecond;
  std::deque<FakeRank> ranks_;
  std::unique_ptr<NodeExperimenter> experimenter_;
  std::atomic<bool> ended_ = false;
  std::optional<Journal> journal_;
  const std::string disable_file_;
  std::atomic<bool> allowed_ = true;

 private:
  absl::StatusOr<std::unique_ptr<RankInjector>> Open(const RankInfo& info,
                                                     const InjectorOptions& options) {
    for (FakeRank& rank : ranks_) {
      if (rank.places.rank.pid != info.pid) continue;
      ++rank.opens;
      rank.options = options;
      if (rank.truth.on_call) rank.truth.on_call("open");
      if (!rank.open_status.ok()) return rank.open_status;
      return std::make_unique<FakeInjector>(rank.truth, &rank.log);
    }
    return absl::InternalError("nobody asked for this rank");
  }

  static char StateOf(pid_t tid) {
    std::ifstream file(absl::StrCat("/proc/self/task/", tid, "/stat"));
    std::string text;
    std::getline(file, text);
    const size_t name_end = text.rfind(')');
    return name_end == std::string::npos ? '?' : text[name_end + 2];
  }

  SleepingRank sleepers_[3];
  size_t threads_before_ = 0;
  Notification begun_;
  std::thread ender_;
  std::atomic<bool> ender_made_ = false;
};

}  // namespace perfd::agent

#endif  // TESTS_UNIT_EXPERIMENT_NODE_FIXTURE_H_
