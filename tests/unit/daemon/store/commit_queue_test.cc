#include "daemon/store/commit_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perfd::daemon {
namespace {

using ::testing::ElementsAre;

CommitQueue::Write Of(size_t bytes, bool urgent = false, bool ahead = false) {
  return {.run = [](Database&) { return absl::OkStatus(); },
          .done = {},
          .bytes = bytes,
          .urgent = urgent,
          .ahead = ahead};
}

// The sizes of the next batch.
std::vector<size_t> Batch(CommitQueue& queue) {
  std::vector<size_t> sizes;
  for (const CommitQueue::Write& write : queue.Drain()) sizes.push_back(write.bytes);
  return sizes;
}

TEST(CommitQueue, ABatchIsBoundedInBytesAndKeepsItsOrder) {
  constexpr size_t kHalf = CommitQueue::kMaxBatchBytes / 2;
  CommitQueue queue(absl::Hours(1));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue.Push(Of(kHalf)).ok());
  ASSERT_TRUE(queue.Push(Of(7, /*urgent=*/true)).ok());
  EXPECT_THAT(Batch(queue), ElementsAre(kHalf, kHalf));
  EXPECT_THAT(Batch(queue), ElementsAre(kHalf, 7)) << "and at once: an urgent one waits";
  EXPECT_EQ(queue.size(), 0u);
}

TEST(CommitQueue, ALargerOneGoesAlone) {
  CommitQueue queue(absl::Hours(1));
  ASSERT_TRUE(queue.Push(Of(CommitQueue::kMaxBatchBytes + 1)).ok());
  ASSERT_TRUE(queue.Push(Of(1, /*urgent=*/true)).ok());
  EXPECT_THAT(Batch(queue), ElementsAre(CommitQueue::kMaxBatchBytes + 1));
  EXPECT_THAT(Batch(queue), ElementsAre(1));
}

TEST(CommitQueue, WhatDependsOnNothingGoesAheadInItsOwnOrder) {
  constexpr size_t kLarge = CommitQueue::kMaxBatchBytes / 2;
  CommitQueue queue(absl::Hours(1));
  ASSERT_TRUE(queue.Push(Of(kLarge)).ok());
  ASSERT_TRUE(queue.Push(Of(kLarge)).ok());
  ASSERT_TRUE(queue.Push(Of(1, /*urgent=*/true, /*ahead=*/true)).ok());
  ASSERT_TRUE(queue.Push(Of(2, /*urgent=*/false, /*ahead=*/true)).ok());
  EXPECT_EQ(queue.size(), 4u);
  EXPECT_THAT(Batch(queue), ElementsAre(1, 2)) << "a large one would hold up their commit";
  EXPECT_THAT(Batch(queue), ElementsAre(kLarge, kLarge));
}

TEST(CommitQueue, ABatchThatIsFullDoesNotWait) {
  CommitQueue queue(absl::Hours(1));
  ASSERT_TRUE(queue.Push(Of(CommitQueue::kMaxBatchBytes)).ok());
  EXPECT_EQ(Batch(queue).size(), 1u);
}

TEST(CommitQueue, PiecesComeOneByOneBehindWhatWaits) {
  auto db = Database::Open(":memory:");
  CommitQueue queue(absl::ZeroDuration());
  int left = 3;
  bool fails = false;
  queue.SetPieces(CommitQueue::kMaxBatchBytes, [&](Database&) -> absl::StatusOr<bool> {
    if (fails) return absl::ResourceExhaustedError("full");
    return --left > 0;
  });
  const auto run = [&] {
    std::vector<CommitQueue::Write> batch = queue.Drain();
    EXPECT_EQ(batch.size(), 1u);
    batch[0].done(batch[0].run(*db));
  };
  queue.BeginPieces();
  queue.BeginPieces();
  EXPECT_EQ(queue.size(), 1u) << "one is enough";
  ASSERT_TRUE(queue.Push(Of(1, /*urgent=*/false, /*ahead=*/true)).ok());
  EXPECT_THAT(Batch(queue), ElementsAre(1)) << "a piece is too large to go with it";
  run();
  EXPECT_EQ(queue.size(), 1u) << "there is more";
  fails = true;
  run();
  EXPECT_EQ(queue.size(), 0u) << "it is not tried again and again";
  fails = false;
  queue.BeginPieces();
  run();
  run();
  EXPECT_EQ(left, 0);
  EXPECT_EQ(queue.size(), 0u);
  queue.Close();
  queue.BeginPieces();
  EXPECT_TRUE(queue.Drain().empty());
}

TEST(CommitQueue, WhatDoesNotFitIsRefused) {
  CommitQueue queue(absl::Hours(1));
  ASSERT_TRUE(queue.Push(Of(CommitQueue::kMaxBytes)).ok());
  EXPECT_TRUE(absl::IsUnavailable(queue.Push(Of(1))));
  queue.Close();
  EXPECT_TRUE(absl::IsUnavailable(queue.Push(Of(0))));
  EXPECT_EQ(Batch(queue).size(), 1u);
  EXPECT_TRUE(queue.Drain().empty()) << "closed and drained";
}

}  // namespace
}  // namespace perfd::daemon
