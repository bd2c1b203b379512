#include "agent/pipeline/session_table.h"

#include "core/base/mutex.h"
#include "core/base/notification.h"
#include "tests/unit/agent/session_fixture.h"

namespace perfd::agent {
namespace {

using Phase = NodeProgress::Phase;
using testing::HasSubstr;

TEST_F(SessionTest, TheTableAnswersARepeatedStartOfAFinishedSessionInsteadOfMeasuringAgain) {
  SessionTable table(tools_, &output_);
  output_.on_update = [&](const SessionUpdate& update) { table.Remember(update); };
  SessionUpdate finished;
  finished.profile_id = request_.profile_id;
  finished.phase = Phase::kFinished;
  finished.last_sequence = 9;
  table.Remember(finished);
  table.Start(request_);
  ASSERT_EQ(output_.update.size(), 1u);
  EXPECT_EQ(output_.update[0].phase, Phase::kFinished);
  EXPECT_EQ(output_.update[0].last_sequence, 9u);
  EXPECT_EQ(table.running(), 0);
  table.EndAll();
}

TEST_F(SessionTest, OneSessionTooManyIsRefusedAndTheOthersGoOn) {
  Notification go_on;
  tools_.sleep = [&](int64_t) { go_on.WaitForNotification(); };
  // Sessions run in threads of their own: each needs its own script.
  Mutex mutex;
  std::vector<std::unique_ptr<FakeSampleSource::Script>> scripts;
  tools_.open_source = [&](const ProfileSpec&, const Discovery&) -> absl::StatusOr<OpenedSource> {
    MutexLock lock(&mutex);
    scripts.push_back(std::make_unique<FakeSampleSource::Script>());
    OpenedSource opened;
    opened.source = std::make_unique<FakeSampleSource>(*scripts.back());
    return opened;
  };
  SessionTable table(tools_, &output_);
  output_.on_update = [&](const SessionUpdate& update) { table.Remember(update); };
  for (size_t i = 0; i <= SessionTable::kMaxSessions; ++i) {
    request_.profile_id = "p-" + std::to_string(i);
    request_.spec.target.pids = {static_cast<int32_t>(5000 + i)};
    AddRank(request_.spec.target.pids[0]);
    table.Start(request_);
  }
  EXPECT_EQ(table.running(), static_cast<int>(SessionTable::kMaxSessions));
  {
    MutexLock lock(&output_.mutex);
    EXPECT_THAT(output_.AllNotices(), HasSubstr("already runs 16 profiles"));
  }
  for (size_t i = 0; i < SessionTable::kMaxSessions; ++i) table.Stop("p-" + std::to_string(i));
  go_on.Notify();
  table.EndAll();
  EXPECT_EQ(table.running(), 0);
}

// As when a read waits for a rank: not even Suspend ends it.
TEST_F(SessionTest, ASessionThatDoesNotAnswerIsNotWaitedFor) {
  Notification hangs, go_on;
  tools_.open_source = [&](const ProfileSpec& spec,
                           const Discovery&) -> absl::StatusOr<OpenedSource> {
    if (spec.target.pids[0] == kPid) {
      hangs.Notify();
      go_on.WaitForNotification();
    }
    return absl::UnavailableError("no source");
  };
  SessionTable table(tools_, &output_);
  output_.on_update = [&](const SessionUpdate& update) { table.Remember(update); };
  table.Start(request_);
  hangs.WaitForNotification();
  request_.profile_id = "p-000002";
  request_.spec.target.pids = {kPid + 1};
  AddRank(kPid + 1);
  table.Start(request_);
  EXPECT_FALSE(table.EndAll(absl::Milliseconds(200)));
  EXPECT_EQ(table.running(), 1) << "the other one has ended";
  go_on.Notify();
  EXPECT_TRUE(table.EndAll());
  EXPECT_EQ(table.running(), 0);
}

}  // namespace
}  // namespace perfd::agent
