// Lanes that share time: order within a lane, equal time between them, nothing saved up, bounds.
#include "daemon/ingest/fair_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "absl/synchronization/notification.h"
#include "daemon/ingest/worker.h"

namespace perfd::daemon {
namespace {

constexpr absl::Duration kNoWait = absl::ZeroDuration();

void Push(FairQueue<int>& queue, int64_t lane, int value) {
  EXPECT_TRUE(queue.TryPush(lane, std::move(value)));
}

TEST(FairQueue, OneLaneIsFirstInFirstOut) {
  FairQueue<int> queue(8);
  for (int i = 0; i < 8; ++i) Push(queue, 0, i);
  int more = 8;
  EXPECT_FALSE(queue.TryPush(1, std::move(more))) << "the bound is of all lanes";
  for (int i = 0; i < 8; ++i) {
    const auto item = queue.Pop(kNoWait);
    EXPECT_EQ(item->value, i);
    queue.Charge(*item, 100 - i);
  }
  EXPECT_FALSE(queue.Pop(kNoWait).has_value());
}

TEST(FairQueue, LanesShareTimeNotItems) {
  FairQueue<int> queue(10'000);
  const std::map<int64_t, int64_t> cost = {{1, 40}, {2, 10}, {3, 1}};
  for (const auto& [lane, ticks] : cost)
    for (int i = 0; i < 2'000; ++i) Push(queue, lane, i);
  std::map<int64_t, int64_t> used;
  std::map<int64_t, int> next;
  for (int64_t time = 0; time < 5'000;) {
    const auto item = queue.Pop(kNoWait);
    EXPECT_EQ(item->value, next[item->lane]++) << "in the order of its lane";
    queue.Charge(*item, cost.at(item->lane));
    used[item->lane] += cost.at(item->lane);
    time += cost.at(item->lane);
  }
  for (const auto& [lane, ticks] : used)
    EXPECT_NEAR(static_cast<double>(ticks), 5'000 / 3.0, 40) << lane;
}

TEST(FairQueue, WhoComesNowAndThenWaitsForOneItem) {
  FairQueue<int> queue(10'000);
  for (int i = 0; i < 5'000; ++i) Push(queue, 1, i);
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 7; ++i) {
      const auto item = queue.Pop(kNoWait);
      EXPECT_EQ(item->lane, 1);
      queue.Charge(*item, 40);
    }
    Push(queue, 2, round);
    const auto first = queue.Pop(kNoWait);
    queue.Charge(*first, 1);
    const auto second = queue.Pop(kNoWait);
    queue.Charge(*second, 1);
    EXPECT_TRUE(first->lane == 2 || second->lane == 2) << "round " << round;
  }
}

TEST(FairQueue, NobodySavesUpTime) {
  FairQueue<int> queue(10'000);
  for (int i = 0; i < 1'000; ++i) Push(queue, 1, i);
  for (int i = 0; i < 500; ++i) queue.Charge(*queue.Pop(kNoWait), 10);
  // Had nothing to do until now; from now on it is one of two.
  for (int i = 0; i < 400; ++i) Push(queue, 2, i);
  int of_two = 0;
  for (int i = 0; i < 200; ++i) {
    const auto item = queue.Pop(kNoWait);
    of_two += item->lane == 2;
    queue.Charge(*item, 10);
  }
  EXPECT_NEAR(of_two, 100, 2);
}

TEST(FairQueue, DebtsAreRememberedWhileSomebodyWaits) {
  FairQueue<int> queue(100);
  Push(queue, 1, 0);
  Push(queue, 2, 0);
  queue.Charge(*queue.Pop(kNoWait), 1'000);  // lane 1, once
  for (int i = 0; i < 20; ++i) Push(queue, 2, i);
  Push(queue, 1, 1);
  for (int i = 0; i < 20; ++i) {
    const auto item = queue.Pop(kNoWait);
    EXPECT_EQ(item->lane, 2) << i;
    queue.Charge(*item, 10);
  }
  EXPECT_EQ(queue.size(), 2u);
  queue.Close();
  EXPECT_TRUE(queue.Pop(kNoWait).has_value());
  EXPECT_TRUE(queue.Pop(kNoWait).has_value());
  EXPECT_FALSE(queue.Pop(kNoWait).has_value());
}

// Two threads: while one is at a long item of lane 1, the other serves lane 2 for as long. Then both have had as much.
TEST(FairQueue, WhatOthersGotMeanwhileIsNotCharged) {
  FairQueue<int> queue(100);
  Push(queue, 1, 0);
  for (int i = 0; i < 40; ++i) Push(queue, 2, i);
  const auto slow = queue.Pop(kNoWait);
  EXPECT_EQ(slow->lane, 1);
  for (int i = 0; i < 10; ++i) queue.Charge(*queue.Pop(kNoWait), 10);
  queue.Charge(*slow, 100);
  Push(queue, 1, 1);
  bool served = false;
  for (int i = 0; i < 2; ++i) {
    const auto item = queue.Pop(kNoWait);
    served |= item->lane == 1;
    queue.Charge(*item, 10);
  }
  EXPECT_TRUE(served);
}

TEST(Worker, ALaneDoesNotWaitForWhatAnotherBroughtBefore) {
  Worker worker("test", 1, 1'000);
  absl::Notification go;
  std::vector<int> order;
  ASSERT_TRUE(worker.Post([&] { go.WaitForNotification(); }));
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(worker.PostTo(7, [&] {
      order.push_back(7);
      absl::SleepFor(absl::Milliseconds(1));
    }));
  ASSERT_TRUE(worker.PostTo(8, [&] { order.push_back(8); }));
  go.Notify();
  worker.Close();
  ASSERT_EQ(order.size(), 101u);
  EXPECT_TRUE(order[0] == 8 || order[1] == 8);
}

}  // namespace
}  // namespace perfd::daemon
