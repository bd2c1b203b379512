// Ranks that could not be restored are tried again until they are, and never while somebody else has them.
#include "agent/experiment/late_healer.h"

#include <map>

#include "core/base/mutex.h"
#include "core/base/notification.h"
#include "gtest/gtest.h"

namespace perfd::agent {
namespace {

RankInfo Rank(int32_t pid) {
  RankInfo rank;
  rank.pid = pid;
  rank.start_ticks = 7;
  return rank;
}

class LateHealerTest : public ::testing::Test {
 protected:
  // Each rank is healed by its third attempt.
  LateHealerOptions Options() {
    return {.heal = [this](const RankInfo& rank) -> absl::Status {
              MutexLock lock(&mutex_);
              return ++attempts_[rank.pid] < 3 ? absl::FailedPreconditionError("it is stopped")
                                               : absl::OkStatus();
            },
            .first_ns = 1000,
            .longest_ns = 2000};
  }
  bool AwaitAttempts(int32_t pid, int attempts) {
    MutexLock lock(&mutex_);
    const auto made = [&]() { return attempts_[pid] >= attempts; };
    return mutex_.AwaitWithTimeout(absl::Condition(&made), absl::Seconds(20));
  }
  int Attempts(int32_t pid) {
    MutexLock lock(&mutex_);
    return attempts_[pid];
  }

  Mutex mutex_;
  std::map<int32_t, int> attempts_;
};

TEST_F(LateHealerTest, TriesUntilNothingIsLeft) {
  LateHealer healer(Options());
  EXPECT_TRUE(healer.HealLater(Rank(1)));
  EXPECT_TRUE(healer.HealLater(Rank(2)));
  EXPECT_TRUE(healer.HealLater(Rank(2)));  // known
  EXPECT_TRUE(AwaitAttempts(1, 3));
  EXPECT_TRUE(AwaitAttempts(2, 3));
  while (healer.waiting() != 0) std::this_thread::yield();
  EXPECT_FALSE(healer.Claim(Rank(1))) << "there is nothing to be healed";
  EXPECT_EQ(healer.waiting(), 0u);
  EXPECT_EQ(Attempts(1), 3);
  EXPECT_EQ(Attempts(2), 3);
  EXPECT_TRUE(healer.HealLater(Rank(3)));  // its thread is still there
  EXPECT_TRUE(AwaitAttempts(3, 3));
}

TEST_F(LateHealerTest, AClaimWaitsForTheHealUnderWayAndEndsFurtherOnes) {
  Notification began, may_end;
  std::atomic<int> heals = 0;
  LateHealer healer({.heal = [&](const RankInfo&) -> absl::Status {
                       ++heals;
                       began.Notify();
                       may_end.WaitForNotification();
                       return absl::UnavailableError("not yet");
                     },
                     .first_ns = 1000,
                     .longest_ns = 1000});
  healer.HealLater(Rank(1));
  began.WaitForNotification();
  std::atomic<bool> claimed = false;
  std::thread claimer([&] {
    EXPECT_TRUE(healer.Claim(Rank(1)));
    claimed = true;
  });
  while (healer.waiting() != 0) std::this_thread::yield();
  EXPECT_FALSE(claimed) << "it is being healed";
  may_end.Notify();
  claimer.join();
  EXPECT_EQ(heals, 1);
}

TEST_F(LateHealerTest, TakesNoMoreThanItsBound) {
  LateHealerOptions options = Options();
  options.first_ns = options.longest_ns = 3600 * kNsPerSecond;
  LateHealer healer(options);
  for (size_t i = 0; i < LateHealer::kMostRanks; ++i)
    ASSERT_TRUE(healer.HealLater(Rank(static_cast<int32_t>(i + 1))));
  EXPECT_FALSE(healer.HealLater(Rank(1'000'000)));
}

}  // namespace
}  // namespace perfd::agent
