#include "daemon/ingest/ingest.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/notification.h"
#include "daemon/ingest/worker.h"

namespace perfd::daemon {
namespace {

// A store and a merger that answer when told to.
class IngestTest : public testing::Test {
 protected:
  Ingest::Ports Ports() {
    Ingest::Ports ports;
    ports.disposition = [this](const std::string&) { return disposition_; };
    ports.skip = [this](const StreamKey& stream, uint64_t sequence,
                        std::function<void(absl::Status)> done) {
      if (!queue_status_.ok()) return queue_status_;
      skipped_.emplace_back(stream.id, sequence);
      skip_done_.push_back(std::move(done));
      return absl::OkStatus();
    };
    ports.keep_audit = [this](const IncomingWindow& incoming,
                              std::function<void(absl::Status)> done) {
      if (!queue_status_.ok()) return queue_status_;
      audited_.push_back(incoming.window.sequence);
      audit_done_.push_back(std::move(done));
      return absl::OkStatus();
    };
    ports.append = [this](const IncomingWindow&,
                          std::function<void(absl::StatusOr<Appended>)> done) {
      if (!queue_status_.ok()) return queue_status_;
      commits_.push_back(std::move(done));
      return absl::OkStatus();
    };
    ports.merge = [this](const std::shared_ptr<const IncomingWindow>& window,
                         const Appended& appended, std::function<void()> done) {
      merged_.emplace_back(window->window.sequence, appended.row_id);
      merge_done_.push_back(std::move(done));
      return merge_has_room_;
    };
    return ports;
  }

  std::optional<absl::Status>& Accept(uint64_t sequence, size_t bytes = 10) {
    IncomingWindow incoming;
    incoming.body.resize(bytes);
    incoming.window.stream_id = incoming.stream.id = "stream";
    incoming.window.profile_id = "p-000001";
    incoming.window.sequence = sequence;
    incoming.window.locations.resize(1);
    incoming.window.locations[0].category = Category::kLoop;
    incoming.window.rows = {{0, 0, 7, 70}};
    incoming.window.audit.resize(audit_entries_);
    incoming.window.accounting.seen = incoming.window.accounting.kept = 7;
    incoming.sender = sender_;
    std::optional<absl::Status>& answer = answers_.emplace_back();
    ingest_.Accept(std::move(incoming), [&answer](const absl::Status& status) { answer = status; });
    return answer;
  }

  uint64_t Dropped(WindowDrop reason) const {
    return ingest_.figures().dropped[static_cast<size_t>(reason)];
  }

  absl::StatusOr<ProfileDisposition> disposition_ = ProfileDisposition::kActive;
  absl::Status queue_status_;
  bool merge_has_room_ = true;
  std::deque<std::function<void(absl::StatusOr<Appended>)>> commits_;
  std::vector<std::pair<uint64_t, int64_t>> merged_;
  std::vector<std::function<void()>> merge_done_;
  std::deque<std::optional<absl::Status>> answers_;
  std::vector<std::pair<std::string, uint64_t>> skipped_;
  std::deque<std::function<void(absl::Status)>> skip_done_;
  std::vector<uint64_t> audited_;
  std::deque<std::function<void(absl::Status)>> audit_done_;
  size_t audit_entries_ = 0;      // of the next windows
  ProfileHolder sender_ = kSite;  // of them
  Ingest ingest_{Ports(),
                 {.user_windows = 1,
                  .user_bytes = 500,
                  .windows = 2,
                  .bytes = 1000,
                  .most_windows = 4,
                  .most_bytes = 3000}};
};

TEST_F(IngestTest, AcknowledgesOnlyAfterTheCommit) {
  auto& answer = Accept(1);
  EXPECT_FALSE(answer.has_value());
  EXPECT_TRUE(merged_.empty());
  commits_.front()(Appended{false, 11, 0});
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->ok());
  ASSERT_EQ(merged_.size(), 1u);
  EXPECT_EQ(merged_[0].second, 11);
  EXPECT_EQ(ingest_.figures().stored, 1u);
  EXPECT_EQ(ingest_.figures().samples[static_cast<size_t>(Category::kLoop)], 7u);
}

TEST_F(IngestTest, DuplicatesAreAcknowledgedButNotMerged) {
  auto& answer = Accept(1);
  commits_.front()(Appended{true, 0, 0});
  EXPECT_TRUE(answer->ok());
  EXPECT_TRUE(merged_.empty());
  EXPECT_EQ(ingest_.figures().duplicate, 1u);
  EXPECT_EQ(ingest_.figures().under_way, 0u);
}

TEST_F(IngestTest, AFailedCommitIsNotAcknowledged) {
  auto& answer = Accept(1);
  commits_.front()(absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(answer->code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(merged_.empty());
  EXPECT_EQ(Dropped(WindowDrop::kStoreFailed), 1u);
}

TEST_F(IngestTest, UselessWindowsAreRememberedAcknowledgedAndCounted) {
  disposition_ = ProfileDisposition::kUnknown;
  auto& unknown = Accept(1);
  disposition_ = ProfileDisposition::kOver;
  auto& over = Accept(2);
  EXPECT_FALSE(unknown.has_value());  // not before the store knows the sequence
  EXPECT_TRUE(commits_.empty());
  EXPECT_EQ(skipped_,
            (std::vector<std::pair<std::string, uint64_t>>{{"stream", 1}, {"stream", 2}}));
  for (const auto& done : skip_done_) done(absl::OkStatus());
  EXPECT_TRUE(unknown->ok());
  EXPECT_TRUE(over->ok());
  EXPECT_EQ(Dropped(WindowDrop::kUnknownProfile), 1u);
  EXPECT_EQ(Dropped(WindowDrop::kProfileOver), 1u);
  EXPECT_EQ(ingest_.figures().under_way, 0u);
}

TEST_F(IngestTest, TheAuditEntriesOfAnUnwantedWindowAreKept) {
  disposition_ = ProfileDisposition::kOver;
  audit_entries_ = 1;
  auto& answer = Accept(1);
  EXPECT_EQ(audited_, std::vector<uint64_t>{1});
  EXPECT_TRUE(skipped_.empty());  // the entries first
  audit_done_[0](absl::OkStatus());
  ASSERT_EQ(skip_done_.size(), 1u);
  EXPECT_FALSE(answer.has_value());
  skip_done_[0](absl::OkStatus());
  EXPECT_TRUE(answer->ok());
  EXPECT_EQ(Dropped(WindowDrop::kProfileOver), 1u);
  EXPECT_EQ(ingest_.figures().under_way, 0u);
}

TEST_F(IngestTest, CountsTheInjectionsOfStoredWindows) {
  audit_entries_ = 2;  // without an action
  Accept(1);
  commits_[0](Appended{.duplicate = false, .row_id = 1, .stream_missing = 0});
  EXPECT_EQ(ingest_.figures().injections.back(), 2u);
  Accept(1);
  commits_[1](Appended{.duplicate = true, .row_id = 0, .stream_missing = 0});
  EXPECT_EQ(ingest_.figures().injections.back(), 2u);
  EXPECT_EQ(AuditActionIndex("map"), 0u);
  EXPECT_EQ(AuditActionIndex("heal"), 5u);
  EXPECT_EQ(AuditActionIndex("strange"), 7u);
}

TEST_F(IngestTest, AuditEntriesThatCannotBeKeptNowComeAgain) {
  disposition_ = ProfileDisposition::kOver;
  audit_entries_ = 1;
  auto& failed = Accept(1);
  audit_done_[0](absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(failed->code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(skipped_.empty());
  auto& never = Accept(2);
  audit_done_[1](absl::InvalidArgumentError("no such profile number"));
  EXPECT_FALSE(never.has_value());
  EXPECT_EQ(skipped_.size(), 1u);
  EXPECT_EQ(ingest_.figures().under_way, 1u);
}

TEST_F(IngestTest, AProfileThatCannotBeReadNowIsNotUnknown) {
  disposition_ = absl::UnavailableError("busy");
  EXPECT_EQ(Accept(1)->code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(skipped_.empty());
}

TEST_F(IngestTest, ARefusalThatCannotBeRememberedComesAgainUnlessItNeverCan) {
  std::vector<absl::Status> answers;
  const auto note = [&](const absl::Status& status) { answers.push_back(status); };
  ingest_.Refuse(WindowDrop::kInvalid, kSite, {"stream"}, 1, note);
  ingest_.Refuse(WindowDrop::kInvalid, kSite, {"stream"}, 2, note);
  skip_done_[0](absl::ResourceExhaustedError("disk full"));
  skip_done_[1](absl::InvalidArgumentError("out of range"));
  EXPECT_EQ(answers[0].code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(answers[1].ok());
  EXPECT_EQ(Dropped(WindowDrop::kInvalid), 1u);
  EXPECT_EQ(Dropped(WindowDrop::kStoreFailed), 1u);
}

TEST_F(IngestTest, AWindowTheStoreWillNeverTakeIsAcknowledged) {
  auto& answer = Accept(1);
  commits_.front()(absl::InvalidArgumentError("out of range"));
  EXPECT_TRUE(answer->ok());
  EXPECT_EQ(Dropped(WindowDrop::kInvalid), 1u);
  EXPECT_EQ(ingest_.figures().under_way, 0u);
}

TEST_F(IngestTest, LateWindowsAreStored) {
  disposition_ = ProfileDisposition::kLate;
  Accept(1);
  EXPECT_EQ(commits_.size(), 1u);
}

TEST_F(IngestTest, OnlySoManyAreUnderWay) {
  for (uint64_t i = 1; i <= 4; ++i) EXPECT_FALSE(Accept(i).has_value());
  EXPECT_EQ(Accept(5)->code(), absl::StatusCode::kUnavailable);
  commits_.front()(Appended{false, 1, 0});
  EXPECT_EQ(Accept(6)->code(), absl::StatusCode::kUnavailable);  // committed, not yet merged
  merge_done_.front()();
  EXPECT_FALSE(Accept(7).has_value());
  EXPECT_EQ(Dropped(WindowDrop::kQueueFull), 2u);
}

TEST_F(IngestTest, OnlySoManyBytesAreUnderWay) {
  EXPECT_FALSE(Accept(1, 3000).has_value());
  EXPECT_EQ(Accept(2, 1)->code(), absl::StatusCode::kUnavailable);
}

TEST_F(IngestTest, SendersWaitForRoom) {
  int woken = 0;
  const auto wake = [&] { ++woken; };
  Accept(1);
  EXPECT_FALSE(ingest_.AwaitRoom(kSite, wake));
  Accept(2);
  EXPECT_TRUE(ingest_.AwaitRoom(kSite, wake));
  EXPECT_TRUE(ingest_.AwaitRoom(kSite, wake));
  EXPECT_FALSE(Accept(3).has_value());  // was under way already
  commits_[0](Appended{true, 0, 0});
  EXPECT_EQ(woken, 0);
  commits_[1](Appended{true, 0, 0});  // half of the limit
  EXPECT_EQ(woken, 2);
  commits_[2](Appended{true, 0, 0});
  EXPECT_EQ(woken, 2);  // once
  Accept(4, 1000);
  EXPECT_TRUE(ingest_.AwaitRoom(kSite, wake));  // bytes count as well
  commits_[3](Appended{true, 0, 0});
  EXPECT_EQ(woken, 3);
}

TEST_F(IngestTest, AgentsOfOneUserWaitForEachOtherAlone) {
  constexpr ProfileHolder kOne = 1001, kAnother = 1002;
  int one = 0;
  const auto wake_one = [&] { ++one; };
  const auto nobody_else = [] { ADD_FAILURE() << "never waited"; };
  sender_ = kOne;
  Accept(1);
  EXPECT_TRUE(ingest_.AwaitRoom(kOne, wake_one));
  EXPECT_FALSE(ingest_.AwaitRoom(kAnother, nobody_else));
  EXPECT_FALSE(ingest_.AwaitRoom(0, nobody_else)) << "root's";
  EXPECT_FALSE(ingest_.AwaitRoom(kSite, nobody_else));
  sender_ = kSite;
  Accept(2);
  EXPECT_TRUE(ingest_.AwaitRoom(kSite, [] {})) << "all of them: two";
  sender_ = kAnother;
  EXPECT_EQ(one, 0);
  commits_[0](Appended{true, 0, 0});
  EXPECT_EQ(one, 1) << "its own are settled";
  EXPECT_FALSE(ingest_.AwaitRoom(kOne, wake_one));
  commits_[1](Appended{true, 0, 0});
  EXPECT_EQ(one, 1);

  sender_ = kOne;
  Accept(3, 600);
  EXPECT_TRUE(ingest_.AwaitRoom(kOne, wake_one)) << "bytes count as well";
  EXPECT_FALSE(ingest_.AwaitRoom(kAnother, nobody_else));
  commits_[2](absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(one, 2);
}

TEST_F(IngestTest, ACommitAfterTheEndTouchesNothing) {
  auto& answer = Accept(1);
  auto ingest = std::make_unique<Ingest>(Ports());
  IncomingWindow incoming;
  incoming.window.profile_id = "p-000001";
  absl::Status late;
  ingest->Accept(std::move(incoming), [&](const absl::Status& status) { late = status; });
  ingest->Close(absl::ZeroDuration());  // the store is slower than we can wait
  ingest->Accept({}, [](const absl::Status& status) { EXPECT_TRUE(absl::IsUnavailable(status)); });
  ingest.reset();
  commits_[1](Appended{false, 1, 0});
  EXPECT_TRUE(absl::IsUnavailable(late)) << late;
  EXPECT_TRUE(merged_.empty());
  EXPECT_FALSE(answer.has_value());
}

TEST_F(IngestTest, AFullStoreQueueIsNotAcknowledged) {
  queue_status_ = absl::UnavailableError("full");
  EXPECT_EQ(Accept(1)->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ingest_.figures().under_way, 0u);
}

TEST(Worker, RunsInOrderAndFinishesWhatIsQueued) {
  std::vector<int> order;
  Worker worker("perfd-test", 1, 100);
  for (int i = 0; i < 100; ++i) worker.Post([&order, i] { order.push_back(i); });
  worker.Close();
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_FALSE(worker.Post([] {}));
}

TEST(Worker, GivesUpWhatItHasNoTimeFor) {
  Notification begun, go_on;
  int ran = 0, given_up = 0;
  Worker worker("perfd-test", 1, 100);
  worker.Post([&] {
    begun.Notify();
    go_on.WaitForNotification();
    ++ran;
  });
  begun.WaitForNotification();
  for (int i = 0; i < 10; ++i) worker.Post([&] { ++ran; }, [&] { ++given_up; });
  worker.Post([&] { ++ran; });  // nobody need be told
  std::thread ends([&] { worker.Close(absl::ZeroDuration()); });
  while (!worker.closed()) std::this_thread::yield();
  go_on.Notify();
  ends.join();
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(given_up, 10);
}

}  // namespace
}  // namespace perfd::daemon
