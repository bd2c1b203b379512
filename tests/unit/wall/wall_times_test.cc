#include "agent/wall/wall_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <string>

namespace perfd::agent {
namespace {

constexpr double kMs = 1e6;
constexpr double kPeriod = 5.025 * kMs;
constexpr double kSecond = 1e9;

// What a thread does at a time: the place, or nothing when it has no CPU.
constexpr uint64_t kSerial = 1;
constexpr uint64_t kParallel = 2;
constexpr uint64_t kSpin = 3;
constexpr uint64_t kKernel = 4;
using Program = std::function<std::optional<uint64_t>(int thread, double ns)>;

Activity ActivityOf(uint64_t place) {
  if (place == kKernel) return Activity::kAsBefore;
  return place == kSpin ? Activity::kWaits : Activity::kComputes;
}

// A rank whose threads are sampled as the kernel does: after so much CPU time of their own.
class Rank {
 public:
  Rank(int threads, Program program) : program_(std::move(program)) {
    for (int i = 0; i < threads; ++i) {
      // As StaggeredRate has them.
      const double turn = (1000 + i) * 0.6180339887498949;
      periods_.push_back(kPeriod * (1 + 0.01 * (2 * (turn - std::floor(turn)) - 1)));
      left_ns_.push_back(periods_.back() * (0.1 + 0.37 * i));
    }
  }

  WallWindow Next(double length_ns) {
    WallWindow window;
    window.elapsed_ns = {static_cast<uint64_t>(length_ns)};
    window.period_ns = kPeriod;
    window.duration_ns = static_cast<int64_t>(length_ns);
    for (size_t i = 0; i < periods_.size(); ++i) Sample(i, length_ns, window);
    now_ns_ += length_ns;
    return window;
  }

 private:
  void Sample(size_t i, double length_ns, WallWindow& window) {
    constexpr double kStep = 0.01 * kMs;
    const auto thread = static_cast<uint32_t>(i);
    window.threads.push_back({.tid = 1000 + static_cast<int32_t>(i)});
    double run_ns = 0;
    for (double at = now_ns_; at < now_ns_ + length_ns; at += kStep) {
      const std::optional<uint64_t> place = program_(static_cast<int>(i), at);
      if (!place.has_value()) continue;
      run_ns += kStep;
      left_ns_[i] -= kStep;
      if (left_ns_[i] > 0) continue;
      left_ns_[i] += periods_[i];
      window.moments.push_back(
          {static_cast<uint64_t>(at + kSecond), RowOf(thread, *place, window)});
      window.rows[window.moments.back().row].cpu_ns += static_cast<uint64_t>(periods_[i]);
    }
    window.threads.back().run_ns = static_cast<uint64_t>(run_ns);
  }

  static uint32_t RowOf(uint32_t thread, uint64_t place, WallWindow& window) {
    const auto found = std::find_if(
        window.rows.begin(), window.rows.end(),
        [&](const WallRow& row) { return row.thread == thread && row.place == place; });
    const auto index = static_cast<uint32_t>(found - window.rows.begin());
    if (found == window.rows.end()) window.rows.push_back({thread, place, ActivityOf(place), 0});
    return index;
  }

  const Program program_;
  std::vector<double> periods_;
  std::vector<double> left_ns_;
  double now_ns_ = 0;
};

// Share of elapsed time of each place over `windows` windows.
std::vector<double> SharesOf(Rank rank, int windows, double length_ns) {
  WallTimes times;
  std::vector<double> shares(5);
  for (int i = 0; i < windows; ++i) {
    const WallWindow window = rank.Next(length_ns);
    const std::vector<uint64_t> wall = times.Divide(window);
    for (size_t row = 0; row < wall.size(); ++row)
      shares[window.rows[row].place] += static_cast<double>(wall[row]) / (windows * length_ns);
  }
  return shares;
}

// Where in its turn (0..1) a program is whose turns are not all of one length: else it could keep step with the sampling.
double Turn(double ns, double turn_ns) {
  const double turns = ns / turn_ns + 0.3 * std::sin(ns / (17.3 * turn_ns));
  return turns - std::floor(turns);
}

// One thread computes alone for `serial` of each turn while the others wait; then all compute.
Program ForkJoin(double turn_ns, double serial, bool spin) {
  return [=](int thread, double ns) -> std::optional<uint64_t> {
    if (Turn(ns, turn_ns) >= serial) return kParallel;
    if (thread == 0) return kSerial;
    if (spin) return kSpin;
    return std::nullopt;
  };
}

TEST(WallTimes, OneThreadHasAllThatItRuns) {
  const auto shares = SharesOf(Rank(1, [](int, double) { return kSerial; }), 4, kSecond);
  EXPECT_NEAR(shares[kSerial], 1, 0.01);
}

TEST(WallTimes, TurnsFarShorterThanThePeriodAreDividedByWhoComputesTogether) {
  for (const bool spin : {true, false}) {
    for (const int threads : {2, 4, 16}) {
      SCOPED_TRACE(std::to_string(threads) + (spin ? " spinning" : " sleeping"));
      const auto shares =
          SharesOf(Rank(threads, ForkJoin(3.5 * kMs, 0.86, spin)), 12, 1.25 * kSecond);
      EXPECT_NEAR(shares[kSerial], 0.86, 0.02);
      EXPECT_NEAR(shares[kParallel], 0.14, 0.03);
      EXPECT_EQ(shares[kSpin], 0);
    }
  }
}

TEST(WallTimes, LongPhasesAreDividedTheSameWay) {
  for (const bool spin : {true, false}) {
    const auto shares = SharesOf(Rank(4, ForkJoin(1.3 * kSecond, 0.5, spin)), 12, 1.25 * kSecond);
    EXPECT_NEAR(shares[kSerial], 0.5, 0.03);
    EXPECT_NEAR(shares[kParallel], 0.5, 0.03);
  }
}

// The same loop alone and by all threads: the mean number of threads would say 0.8 of the time.
TEST(WallTimes, ALoopThatRunsAloneAndInParallelByPhases) {
  const auto shares = SharesOf(Rank(4,
                                    [](int thread, double ns) -> std::optional<uint64_t> {
                                      const bool alone = std::fmod(ns, kSecond) < 0.5 * kSecond;
                                      if (alone && thread > 0) return std::nullopt;
                                      return kParallel;
                                    }),
                               12, 1.25 * kSecond);
  EXPECT_NEAR(shares[kParallel], 1, 0.04);
}

TEST(WallTimes, MomentsInWhichNobodyComputesAreNobodys) {
  const auto shares = SharesOf(Rank(2,
                                    [](int, double ns) -> std::optional<uint64_t> {
                                      if (Turn(ns, 8 * kMs) < 0.5) return kParallel;
                                      return kSpin;
                                    }),
                               12, 1.25 * kSecond);
  EXPECT_NEAR(shares[kParallel], 0.5, 0.03);
  EXPECT_EQ(shares[kSpin], 0);
}

TEST(WallTimes, TheKernelWaitsForWhoWaitedBefore) {
  const auto shares = SharesOf(Rank(1,
                                    [](int, double ns) -> std::optional<uint64_t> {
                                      const double at = std::fmod(ns, 200 * kMs);
                                      const bool kernel = std::fmod(at, 50 * kMs) > 40 * kMs;
                                      if (kernel) return kKernel;
                                      return at < 100 * kMs ? kSerial : kSpin;
                                    }),
                               8, kSecond);
  EXPECT_NEAR(shares[kSerial], 0.4, 0.02);
  EXPECT_NEAR(shares[kKernel], 0.1, 0.02);
}

WallWindow OneRow(uint64_t run_ns, uint64_t wait_ns) {
  WallWindow window;
  window.elapsed_ns = {1000};
  window.period_ns = 10;
  window.duration_ns = 1000;
  window.threads = {{.tid = 7, .rank = 0, .run_ns = run_ns, .wait_ns = wait_ns}};
  window.rows = {{.thread = 0, .place = kSerial, .cpu_ns = 550}};
  for (uint64_t i = 0; i < 50; ++i) window.moments.push_back({1000 + 10 * i, 0});
  return window;
}

TEST(WallTimes, TheSchedulerKnowsBetterThanSamplesHowLongAThreadRan) {
  EXPECT_THAT(WallTimes().Divide(OneRow(600, 0)), testing::ElementsAre(600));
  EXPECT_THAT(WallTimes().Divide(OneRow(0, 0)), testing::ElementsAre(550));
}

TEST(WallTimes, WhatAThreadWantedACpuForIsItsTime) {
  EXPECT_THAT(WallTimes().Divide(OneRow(600, 300)), testing::ElementsAre(900));
  EXPECT_THAT(WallTimes().Divide(OneRow(600, 900)), testing::ElementsAre(1000)) << "of this window";
}

TEST(WallTimes, NoMoreThanTheElapsedTime) {
  EXPECT_THAT(WallTimes().Divide(OneRow(2000, 2000)), testing::ElementsAre(1000));
}

TEST(WallTimes, ThreadsThatTakeTurnsOnTooFewCpusWaitForEachOther) {
  // Two threads, one CPU: neither of them is the rank's only work, and nothing is added for the waiting.
  WallWindow window;
  window.elapsed_ns = {1000};
  window.period_ns = 10;
  window.threads = {{.tid = 1, .run_ns = 500, .wait_ns = 500},
                    {.tid = 2, .run_ns = 500, .wait_ns = 500}};
  window.rows = {{.thread = 0, .place = kParallel, .cpu_ns = 500},
                 {.thread = 1, .place = kParallel, .cpu_ns = 500}};
  for (uint32_t i = 0; i < 100; ++i) window.moments.push_back({1000 + 10 * i, i / 50});
  const std::vector<uint64_t> wall = WallTimes().Divide(window);
  EXPECT_NEAR(static_cast<double>(wall[0] + wall[1]), 1000, 2);
  EXPECT_NEAR(static_cast<double>(wall[0]), 500, 20);
}

TEST(WallTimes, RanksDoNotShareTheirTime) {
  WallWindow window;
  window.elapsed_ns = {500, 500};
  window.period_ns = 10;
  window.threads = {{.tid = 1, .rank = 0}, {.tid = 2, .rank = 1}};
  window.rows = {{.thread = 0, .place = kParallel, .cpu_ns = 500},
                 {.thread = 1, .place = kParallel, .cpu_ns = 500}};
  for (uint32_t i = 0; i < 100; ++i) window.moments.push_back({1000 + 5 * (i / 2) * 2, i % 2});
  EXPECT_THAT(WallTimes().Divide(window), testing::ElementsAre(500, 500));
}

}  // namespace
}  // namespace perfd::agent
