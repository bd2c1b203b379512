#include "agent/discover/tree/launchers.h"

#include <gtest/gtest.h>

namespace perfd::agent {
namespace {

constexpr int64_t kProbe = 250'000'000;
constexpr uint64_t kBusy = kProbe / 2;
constexpr uint64_t kSecond = 1'000'000'000;

WatchedParent Idle() {
  return {.named_so = false, .is_rank = false, .use = {0, kSecond / 10}, .wait_channel = "do_wait"};
}

const std::vector<WatchedChild> kWorker = {{.is_rank = false, .use = {kBusy, 2 * kSecond}}};

TEST(LaunchersTest, WhoWaitsWhileAChildWorksIsOne) {
  EXPECT_TRUE(OnlyWaits(Idle(), kWorker, kProbe));
}

TEST(LaunchersTest, WhoWorksItselfIsNone) {
  WatchedParent parent = Idle();
  parent.use.used_ns = kBusy;
  EXPECT_FALSE(OnlyWaits(parent, kWorker, kProbe));
  parent.use.used_ns = kProbe / 100;  // of mpirun, which hands on what its ranks print
  EXPECT_FALSE(OnlyWaits(parent, kWorker, kProbe));
  parent.named_so = true;
  EXPECT_TRUE(OnlyWaits(parent, kWorker, kProbe));
  parent.use.used_ns = kBusy;  // a shell that computes
  EXPECT_FALSE(OnlyWaits(parent, kWorker, kProbe));
}

// It does nothing in the look, but did before, and will perhaps again.
TEST(LaunchersTest, WhoHasWorkedMuchIsNone) {
  WatchedParent parent = Idle();
  parent.use.lifetime_ns = kSecond;  // the boundary
  EXPECT_TRUE(OnlyWaits(parent, kWorker, kProbe));
  parent.use.lifetime_ns = kSecond + 1;
  EXPECT_FALSE(OnlyWaits(parent, kWorker, kProbe));
  // Next to what those below it have used it is little again.
  const std::vector<WatchedChild> old = {{.is_rank = false, .use = {kBusy, 20 * kSecond}}};
  EXPECT_TRUE(OnlyWaits(parent, old, kProbe));
}

TEST(LaunchersTest, WhoHasNothingBelowThatWorksIsNone) {
  EXPECT_FALSE(OnlyWaits(Idle(), {}, kProbe));
  EXPECT_FALSE(OnlyWaits(Idle(), {{.is_rank = false, .use = {0, 0}}}, kProbe));
  EXPECT_TRUE(OnlyWaits(Idle(), {{.is_rank = true, .use = {0, 0}}}, kProbe)) << "a rank that waits";
}

TEST(LaunchersTest, ARankIsNoneUnlessItIsAWrapper) {
  WatchedParent parent = Idle();
  parent.is_rank = true;
  EXPECT_FALSE(OnlyWaits(parent, kWorker, kProbe));
  parent.named_so = true;
  EXPECT_TRUE(OnlyWaits(parent, kWorker, kProbe));
}

TEST(LaunchersTest, WhoWaitsForSomethingElseIsNone) {
  WatchedParent parent = Idle();
  for (const char* other : {"pipe_read", "futex_wait_queue", "hrtimer_nanosleep"}) {
    parent.wait_channel = other;
    EXPECT_FALSE(OnlyWaits(parent, kWorker, kProbe)) << other;
  }
  for (const char* same : {"", "0", "do_poll.constprop.0", "sigsuspend", "ep_poll"}) {
    parent.wait_channel = same;
    EXPECT_TRUE(OnlyWaits(parent, kWorker, kProbe)) << same;
  }
}

}  // namespace
}  // namespace perfd::agent
