#include "agent/shadow/run/fault_watch.h"

#include "core/base/clock.h"
#include "gtest/gtest.h"

namespace perfd::agent {
namespace {

constexpr int64_t kMs = kNsPerMs, kSecond = kNsPerSecond;

TEST(FaultWatchTest, FaultsOfTheRankItselfAreNotCounted) {
  FaultWatch watch;
  watch.Observe(0, 1000);
  watch.Observe(2 * kSecond, 3000);  // 1000 a second
  watch.ShadowEnded(2 * kSecond, 3000);
  EXPECT_EQ(watch.LaterFaults(2 * kSecond + 100 * kMs, 9000), std::nullopt) << "too soon";
  EXPECT_EQ(watch.LaterFaults(4 * kSecond, 9096), 4096u);
  EXPECT_EQ(watch.LaterFaults(5 * kSecond, 9999), std::nullopt) << "once";
}

TEST(FaultWatchTest, FaultsOfAShadowAreNotTakenForTheRanksOwn) {
  FaultWatch watch;
  watch.Observe(0, 0);
  watch.Observe(kSecond, 0);
  for (int64_t at = 1; at < 20; at += 2) {
    const auto before = static_cast<uint64_t>(at - 1) * 1000;
    watch.ShadowEnded(at * kSecond, before);
    watch.Observe(at * kSecond + 100 * kMs, before + 1500);
    EXPECT_EQ(watch.LaterFaults((at + 1) * kSecond, before + 2000), 2000u);
    watch.Observe((at + 1) * kSecond + 900 * kMs, before + 2000);
  }
}

TEST(FaultWatchTest, WhatIsLongPastSaysNothing) {
  FaultWatch watch;
  watch.ShadowEnded(0, 0);
  EXPECT_EQ(watch.LaterFaults(60 * kSecond, 500), std::nullopt);
  watch.ShadowEnded(60 * kSecond, 500);
  EXPECT_EQ(watch.LaterFaults(61 * kSecond, 100), std::nullopt) << "another process";
  watch.ShadowEnded(62 * kSecond, 100);
  watch.Forget();
  EXPECT_EQ(watch.LaterFaults(63 * kSecond, 200), std::nullopt);
}

}  // namespace
}  // namespace perfd::agent
