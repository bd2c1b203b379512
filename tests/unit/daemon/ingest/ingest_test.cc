#include "daemon/ingest/ingest.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <vector>

#include "daemon/ingest/worker.h"

namespace perfd {
namespace {

// A store and a merger that answer when told to.
class IngestTest : public testing::Test {
 protected:
  Ingest::Ports Ports() {
    Ingest::Ports ports;
    ports.fate = [this](const std::string&) { return fate_; };
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

  std::optional<absl::Status>& Take(uint64_t sequence) {
    IncomingWindow incoming;
    incoming.window.profile_id = "p-000001";
    incoming.window.sequence = sequence;
    incoming.window.locations.resize(1);
    incoming.window.locations[0].category = Category::kLoop;
    incoming.window.rows = {{0, 0, 7, 70}};
    incoming.window.accounting.seen = incoming.window.accounting.kept = 7;
    std::optional<absl::Status>& answer = answers_.emplace_back();
    ingest_.Take(std::move(incoming), [&answer](const absl::Status& status) { answer = status; });
    return answer;
  }

  uint64_t Dropped(WindowDrop reason) const {
    return ingest_.figures().dropped[static_cast<size_t>(reason)];
  }

  ProfileFate fate_ = ProfileFate::kActive;
  absl::Status queue_status_;
  bool merge_has_room_ = true;
  std::deque<std::function<void(absl::StatusOr<Appended>)>> commits_;
  std::vector<std::pair<uint64_t, int64_t>> merged_;
  std::vector<std::function<void()>> merge_done_;
  std::deque<std::optional<absl::Status>> answers_;
  Ingest ingest_{Ports(), 2};
};

TEST_F(IngestTest, AcknowledgesOnlyAfterTheCommit) {
  auto& answer = Take(1);
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
  auto& answer = Take(1);
  commits_.front()(Appended{true, 0, 0});
  EXPECT_TRUE(answer->ok());
  EXPECT_TRUE(merged_.empty());
  EXPECT_EQ(ingest_.figures().duplicate, 1u);
  EXPECT_EQ(ingest_.figures().under_way, 0u);
}

TEST_F(IngestTest, AFailedCommitIsNotAcknowledged) {
  auto& answer = Take(1);
  commits_.front()(absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(answer->code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(merged_.empty());
  EXPECT_EQ(Dropped(WindowDrop::kStoreFailed), 1u);
}

TEST_F(IngestTest, UselessWindowsAreAcknowledgedAndCounted) {
  fate_ = ProfileFate::kUnknown;
  EXPECT_TRUE(Take(1)->ok());
  fate_ = ProfileFate::kOver;
  EXPECT_TRUE(Take(2)->ok());
  EXPECT_TRUE(commits_.empty());
  EXPECT_EQ(Dropped(WindowDrop::kUnknownProfile), 1u);
  EXPECT_EQ(Dropped(WindowDrop::kProfileOver), 1u);
}

TEST_F(IngestTest, LateWindowsAreStored) {
  fate_ = ProfileFate::kLate;
  Take(1);
  EXPECT_EQ(commits_.size(), 1u);
}

TEST_F(IngestTest, OnlySoManyAreUnderWay) {
  Take(1);
  Take(2);
  EXPECT_EQ(Take(3)->code(), absl::StatusCode::kUnavailable);
  commits_.front()(Appended{false, 1, 0});
  EXPECT_EQ(Take(4)->code(), absl::StatusCode::kUnavailable);  // committed, not yet merged
  merge_done_.front()();
  EXPECT_FALSE(Take(5).has_value());
  EXPECT_EQ(Dropped(WindowDrop::kQueueFull), 2u);
}

TEST_F(IngestTest, AFullStoreQueueIsNotAcknowledged) {
  queue_status_ = absl::UnavailableError("full");
  EXPECT_EQ(Take(1)->code(), absl::StatusCode::kUnavailable);
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

}  // namespace
}  // namespace perfd
