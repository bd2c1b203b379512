// One profile of a recording: its ranks, its windows, and what is said of what is missing.
#include "agent/replay/replay_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/mutex.h"
#include "tests/unit/replay/replayed_recording.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Collected final : public SessionOutput {
 public:
  void OnUpdate(const SessionUpdate& update) override {
    MutexLock lock(&mutex_);
    updates_.push_back(update);
  }
  absl::StatusOr<uint64_t> OnWindow(Window window) override {
    MutexLock lock(&mutex_);
    windows_.push_back(std::move(window));
    return windows_.size();
  }
  std::vector<SessionUpdate> updates() {
    MutexLock lock(&mutex_);
    return updates_;
  }
  std::vector<Window> windows() {
    MutexLock lock(&mutex_);
    return windows_;
  }
  std::string Notices() {
    std::string out;
    for (const SessionUpdate& update : updates()) {
      for (const Notice& notice : update.notices) out += notice.text + "\n";
    }
    return out;
  }

 private:
  Mutex mutex_;
  std::vector<SessionUpdate> updates_ ABSL_GUARDED_BY(mutex_);
  std::vector<Window> windows_ ABSL_GUARDED_BY(mutex_);
};

class ReplaySessionTest : public testing::Test {
 protected:
  ReplaySessionTest() {
    recording_.Process(10, "solver");
    recording_.Process(9, "solver");
    recording_.Process(20, "helper");
    for (uint32_t pid : {9u, 10u, 20u}) recording_.Map(pid, 0x1000, 0x1000, "/app");
  }

  SessionRequest Request(int64_t seconds = 60) {
    SessionRequest request;
    request.profile_id = "p-000001";
    request.spec.target.command = "solver";
    request.spec.variants.set.clear();
    request.remaining_ns = seconds * 1'000'000'000;
    return request;
  }

  void Run(
      SessionRequest request, std::function<bool()> has_room = [] { return true; }) {
    index_ = *IndexRecording(recording_.Write());
    RecordedFiles files({}, nullptr, {});
    Resolver resolver(files.Opener(), clock_);
    ReplayTools tools{recording_.Write(), &index_, &files,  &resolver,
                      &collected_,        &clock_, "node1", std::move(has_room),
                      clock_.UnixNs()};
    ReplaySession session(std::move(request), std::move(tools));
    session.Run();
  }

  SystemClock clock_;
  ReplayedRecording recording_;
  RecordingIndex index_;
  Collected collected_;
};

TEST_F(ReplaySessionTest, SamplesOfTheTargetBecomeWindowsOfTheRecordingsTime) {
  for (uint64_t i = 0; i < 12; ++i) {
    recording_.Sample(kCycles, 10, (i + 1) * kSecond, 0x1100);
    recording_.Sample(kCycles, 20, (i + 1) * kSecond, 0x1100);
    recording_.Sample(kLoads, 9, (i + 1) * kSecond + 1, 0x1200, 40);
  }
  Run(Request());
  const std::vector<Window> windows = collected_.windows();
  ASSERT_EQ(windows.size(), 3u);
  Accounting sum;
  uint64_t accesses = 0, rows = 0;
  for (const Window& window : windows) {
    sum += window.accounting;
    EXPECT_EQ(window.setup.provenance, Provenance::kReplayed);
    EXPECT_EQ(window.setup.frequency_hz, 100);
    for (const MemoryRow& row : window.findings.memory.rows) {
      accesses += row.profile.all.samples;
      EXPECT_EQ(row.rank, 0) << "pid 9 comes before 10";
    }
    for (const WindowRow& row : window.rows) rows += row.samples;
  }
  EXPECT_EQ(accesses, 12u);
  EXPECT_EQ(rows, 12u);
  EXPECT_EQ(sum.seen, 24u);
  EXPECT_EQ(sum.kept, 12u);
  EXPECT_EQ(sum.dropped[static_cast<size_t>(DropReason::kForeignProcess)], 12u);
  EXPECT_EQ(windows[1].start_unix_ns - windows[0].start_unix_ns, 5'000'000'000);
  EXPECT_LE(windows[2].start_unix_ns, clock_.UnixNs());
  const SessionUpdate last = collected_.updates().back();
  EXPECT_EQ(last.phase, NodeProgress::Phase::kFinished);
  EXPECT_EQ(last.last_sequence, 3u);
  EXPECT_EQ(last.ranks.size(), 2u);
  EXPECT_THAT(collected_.Notices(), HasSubstr("in the order of their pids"));
}

TEST_F(ReplaySessionTest, WindowsCoverOnlyWhatHasSamples) {
  for (const uint64_t at : {uint64_t{1}, uint64_t{2}, uint64_t{7200}})
    recording_.Sample(kCycles, 10, at * kSecond, 0x1100);
  Run(Request(9000));
  const std::vector<Window> windows = collected_.windows();
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_EQ(windows[0].duration_ns, 5'000'000'000);
  EXPECT_LE(windows[1].duration_ns, 1);
}

TEST_F(ReplaySessionTest, ACutReplayEndsAtTheCut) {
  for (uint64_t i = 0; i < 3600; ++i) recording_.Sample(kCycles, 10, (i + 1) * kSecond, 0x1100);
  Run(Request(6));
  int64_t covered_ns = 0;
  for (const Window& window : collected_.windows()) covered_ns += window.duration_ns;
  EXPECT_LE(covered_ns, 6'000'000'000);
}

TEST_F(ReplaySessionTest, APeriodThatCannotBeIsMalformed) {
  recording_.Sample(kCycles, 10, kSecond, 0x1100, 0, uint64_t{1} << 50);
  recording_.Sample(kCycles, 10, kSecond, 0x1100);
  Run(Request());
  const std::vector<Window> windows = collected_.windows();
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0].accounting.seen, 2u);
  EXPECT_EQ(windows[0].accounting.kept, 1u);
}

TEST_F(ReplaySessionTest, AShorterProfileHasTheBeginning) {
  for (uint64_t i = 0; i < 20; ++i) recording_.Sample(kCycles, 10, (i + 1) * kSecond, 0x1100);
  Run(Request(6));
  uint64_t samples = 0;
  for (const Window& window : collected_.windows()) samples += window.accounting.kept;
  EXPECT_EQ(samples, 6u);
  EXPECT_THAT(collected_.Notices(), HasSubstr("--duration 20s"));
}

TEST_F(ReplaySessionTest, ATargetThatIsNotThereNamesThoseThatAre) {
  recording_.Sample(kCycles, 10, kSecond, 0x1100);
  recording_.Sample(kCycles, 20, kSecond, 0x1100);
  SessionRequest request = Request();
  request.spec.target.command = "nosuch";
  Run(std::move(request));
  EXPECT_EQ(collected_.updates().back().phase, NodeProgress::Phase::kFailed);
  EXPECT_THAT(collected_.Notices(), HasSubstr("solver (pid 10)"));
  EXPECT_TRUE(collected_.windows().empty());
}

TEST_F(ReplaySessionTest, JobsAndTreesAreNotKnown) {
  recording_.Sample(kCycles, 10, kSecond, 0x1100);
  SessionRequest request = Request();
  request.spec.target = {};
  request.spec.target.slurm_job = 7;
  Run(std::move(request));
  EXPECT_EQ(collected_.updates().back().phase, NodeProgress::Phase::kFailed);
  EXPECT_THAT(collected_.Notices(), HasSubstr("--pid or --command"));
}

TEST_F(ReplaySessionTest, AnEventThatTellsNothingOfMemoryIsSaidToBeLeftOut) {
  for (uint64_t i = 0; i < 5; ++i) recording_.Sample(kCycles, 10, (i + 1) * kSecond, 0x1100);
  recording_.Sample(kLoads, 10, kSecond, 0x1100);
  Run(Request());
  EXPECT_THAT(collected_.Notices(), HasSubstr("1 samples of event 2 are not used"));
  EXPECT_THAT(collected_.Notices(), Not(HasSubstr("no event of its own for time")));
}

TEST_F(ReplaySessionTest, SharesOfAccessesAreNotCalledTimeWithoutAWord) {
  for (uint64_t i = 0; i < 5; ++i) recording_.Sample(kLoads, 10, (i + 1) * kSecond, 0x1100, 40);
  Run(Request());
  EXPECT_THAT(collected_.Notices(), HasSubstr("no event of its own for time"));
}

TEST_F(ReplaySessionTest, WaitsUntilThereIsRoom) {
  for (uint64_t i = 0; i < 12; ++i) recording_.Sample(kCycles, 10, (i + 1) * kSecond, 0x1100);
  std::atomic<int> asked = 0;
  Run(Request(), [&] { return ++asked % 4 == 0; });
  EXPECT_EQ(collected_.windows().size(), 3u);
  EXPECT_GE(asked, 12);
}

}  // namespace
}  // namespace perfd::agent
