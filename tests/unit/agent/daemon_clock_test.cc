#include "agent/link/daemon_clock.h"

#include <gtest/gtest.h>

namespace perfd::agent {
namespace {

constexpr int64_t kHourNs = 3600 * kNsPerSecond;
constexpr int64_t kNoonNs = 1'700'000'000 * kNsPerSecond;  // of the daemon

class TwoClocks final : public Clock {
 public:
  int64_t MonotonicNs() const override { return monotonic_ns; }
  int64_t UnixNs() const override { return unix_ns; }
  void Pass(int64_t ns) {
    monotonic_ns += ns;
    unix_ns += ns;
  }

  int64_t monotonic_ns = 77 * kNsPerSecond;
  int64_t unix_ns = kNoonNs;
};

class DaemonClockTest : public testing::Test {
 protected:
  TwoClocks here_;
  DaemonClock clock_{here_};
};

TEST_F(DaemonClockTest, AgreesWithADaemonThatIsNotKnown) {
  EXPECT_EQ(clock_.AheadNs(), 0);
  for (const int64_t nonsense : {int64_t{0}, int64_t{-5}, INT64_MIN, INT64_MAX}) {
    clock_.Welcomed(nonsense);
    EXPECT_EQ(clock_.AheadNs(), 0) << nonsense;
  }
}

TEST_F(DaemonClockTest, ASecondIsAgreement) {
  clock_.Welcomed(kNoonNs - DaemonClock::kAgreeNs);
  EXPECT_EQ(clock_.AheadNs(), 0);
  clock_.Welcomed(kNoonNs - DaemonClock::kAgreeNs - 1);
  EXPECT_EQ(clock_.AheadNs(), DaemonClock::kAgreeNs + 1);
  clock_.Welcomed(kNoonNs + DaemonClock::kAgreeNs + 1);
  EXPECT_EQ(clock_.AheadNs(), -DaemonClock::kAgreeNs - 1);
}

TEST_F(DaemonClockTest, AClockThatIsSetMeanwhileIsSeen) {
  clock_.Welcomed(kNoonNs - kHourNs);
  here_.Pass(5 * kNsPerSecond);
  EXPECT_EQ(clock_.AheadNs(), kHourNs);
  here_.unix_ns -= kHourNs;
  EXPECT_EQ(clock_.AheadNs(), 0) << "it is right now";
  here_.unix_ns -= kHourNs;
  EXPECT_EQ(clock_.AheadNs(), -kHourNs);
}

TEST_F(DaemonClockTest, WhatComesLateIsNotBelieved) {
  clock_.Welcomed(kNoonNs);
  here_.Pass(30 * kNsPerSecond);
  clock_.Told(kNoonNs + 5 * kNsPerSecond);  // was held up for 25 s
  EXPECT_EQ(clock_.AheadNs(), 0);
  here_.Pass(5 * kNsPerSecond);
  clock_.Told(kNoonNs + 35 * kNsPerSecond);
  EXPECT_EQ(clock_.AheadNs(), 0);
}

TEST_F(DaemonClockTest, ADaemonWhoseClockIsSetIsFollowed) {
  clock_.Welcomed(kNoonNs - kHourNs);
  here_.Pass(5 * kNsPerSecond);
  clock_.Told(kNoonNs + 5 * kNsPerSecond);
  EXPECT_EQ(clock_.AheadNs(), 0) << "it was behind, and was set forward";
  clock_.Told(0);  // an older daemon does not say
  EXPECT_EQ(clock_.AheadNs(), 0);
  for (const int64_t ahead_ns : {int64_t{0}, kHourNs}) {
    clock_.Told(kNoonNs + 5 * kNsPerSecond - kHourNs);
    EXPECT_EQ(clock_.AheadNs(), ahead_ns) << "set back: said twice it is no delay";
  }
  clock_.Welcomed(kNoonNs - 2 * kHourNs);
  EXPECT_EQ(clock_.AheadNs(), 2 * kHourNs + 5 * kNsPerSecond) << "another daemon, perhaps";
}

TEST_F(DaemonClockTest, WhatMayBeDriftIsNoSkew) {
  clock_.Welcomed(kNoonNs);
  here_.Pass(1000 * kNsPerSecond);
  here_.unix_ns += kNsPerSecond + kNsPerSecond / 2;  // 500 ppm of 1000 s is half a second
  EXPECT_EQ(clock_.AheadNs(), 0);
  here_.unix_ns += 1000;
  EXPECT_NE(clock_.AheadNs(), 0);
}

TEST_F(DaemonClockTest, AWindowIsToldByTheDaemonsClock) {
  Window window;
  window.start_unix_ns = kNoonNs;
  window.duration_ns = 5;
  window.audit.resize(2);
  window.audit[0].unix_ns = kNoonNs + 3;
  Window same = window;
  ToDaemonTime(0, same);
  EXPECT_EQ(same, window);
  ToDaemonTime(kHourNs, window);
  EXPECT_EQ(window.start_unix_ns, kNoonNs - kHourNs);
  EXPECT_EQ(window.duration_ns, 5);
  EXPECT_EQ(window.audit[0].unix_ns, kNoonNs - kHourNs + 3);
  EXPECT_EQ(window.audit[1].unix_ns, 0) << "no time is below zero: perfd would refuse the window";
  ToDaemonTime(-kHourNs, window);
  EXPECT_EQ(window.start_unix_ns, kNoonNs);
}

}  // namespace
}  // namespace perfd::agent
