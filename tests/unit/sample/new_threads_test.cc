#include "agent/sample/pace/new_threads.h"

#include <gtest/gtest.h>

namespace perfd::agent {
namespace {

// A drain after which so many of those that were given an event run on; how many were given one.
size_t Drain(NewThreads& threads, size_t begun, size_t stay) {
  for (size_t i = 0; i < begun; ++i) threads.Announce(1, static_cast<int32_t>(i));
  const NewThreads::Choice choice = threads.Next();
  EXPECT_EQ(choice.left_out.size() + choice.open.size(), begun);
  for (const NewThread& thread : choice.open) threads.Given(thread.tid);
  size_t seen = 0;
  threads.Learn([&](int32_t) { return seen++ < stay; });
  return choice.open.size();
}

TEST(NewThreads, ThoseThatEndAtOnceAreGivenFewEvents) {
  NewThreads threads;
  EXPECT_EQ(Drain(threads, 400, 0), NewThreads::kMost);
  for (int i = 0; i < 10; ++i) Drain(threads, 400, 0);
  EXPECT_EQ(Drain(threads, 400, 1), NewThreads::kLeast);
  EXPECT_EQ(Drain(threads, 400, 2), 2 * NewThreads::kLeast) << "half of them stayed";
  for (int i = 0; i < 10; ++i) Drain(threads, 400, 400);
  EXPECT_EQ(Drain(threads, 400, 400), NewThreads::kMost);
}

TEST(NewThreads, FewAreAllGivenOneAndWhenNobodyBeginsNothingIsLearnt) {
  NewThreads threads;
  EXPECT_EQ(Drain(threads, 20, 20), 20u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Drain(threads, 0, 0), 0u);
  EXPECT_EQ(Drain(threads, 20, 0), 20u);
}

TEST(NewThreads, TheLastThatBeganAreGivenOne) {
  NewThreads threads;
  for (int32_t tid = 1; tid <= 100; ++tid) threads.Announce(7, tid);
  const NewThreads::Choice choice = threads.Next();
  EXPECT_EQ(choice.left_out.front().tid, 1);
  EXPECT_EQ(choice.open.front().tid, 37);
  EXPECT_EQ(choice.open.back().tid, 100);
  EXPECT_EQ(choice.open.back().pid, 7);
}

}  // namespace
}  // namespace perfd::agent
