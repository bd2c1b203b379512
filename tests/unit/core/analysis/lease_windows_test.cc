#include "core/analysis/lease_windows.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace perfd {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1'000 * kMs;

BudgetSpec Budget(double ratio, int64_t shadow_ns) {
  BudgetSpec budget;
  budget.overhead_ratio = ratio;
  budget.shadow_ns = shadow_ns;
  return budget;
}

TEST(PlanLease, FollowsTheBudgetWithinBounds) {
  const PauseLease usual = PlanLease(Budget(0.02, 500 * kMs), 3);
  EXPECT_EQ(usual.period_ns, 250 * kMs);
  EXPECT_EQ(usual.window_ns, 200 * kMs);
  EXPECT_EQ(usual.nodes, 3);
  EXPECT_EQ(PlanLease(Budget(0.5, 100 * kMs), 2).period_ns, 100 * kMs);
  EXPECT_EQ(PlanLease(Budget(0.0001, 500 * kMs), 2).period_ns, 2 * kSecond);
  EXPECT_EQ(PlanLease(Budget(0, 500 * kMs), 2).period_ns, 2 * kSecond);
}

TEST(ClockReading, GoesThereAndBackAndIsTrustedForAWhile) {
  const ClockReading clock{.here_ns = 50 * kSecond, .job_ns = 900 * kSecond, .error_ns = kMs};
  EXPECT_EQ(JobTime(clock, 51 * kSecond), 901 * kSecond);
  EXPECT_EQ(HereTime(clock, 901 * kSecond), 51 * kSecond);
  EXPECT_EQ(ErrorAt(clock, 50 * kSecond), kMs);
  // 100 us a second: the second millisecond is over after ten seconds, forwards and backwards.
  EXPECT_TRUE(Trusted(clock, 60 * kSecond));
  EXPECT_FALSE(Trusted(clock, 60 * kSecond + 10 * kMs));
  EXPECT_FALSE(Trusted(clock, 40 * kSecond - 10 * kMs));
  EXPECT_FALSE(Trusted(ClockReading{}, 0)) << "nobody has read it";
}

TEST(WindowOf, LevelsBeginTogetherAndLastLonger) {
  const PauseLease lease{.period_ns = 100, .window_ns = 80};
  EXPECT_EQ(WindowOf(lease, 7, 0), (LeaseWindow{7, 700, 780}));
  EXPECT_EQ(WindowOf(lease, 8, 2), (LeaseWindow{8, 800, 1180}));
  EXPECT_EQ(NextGeneration(lease, 700), 7u);
  EXPECT_EQ(NextGeneration(lease, 701), 8u);
  EXPECT_EQ(NextGeneration(lease, -5), 0u);
}

TEST(LevelFor, IsTheSmallestThatIsLongEnough) {
  const PauseLease lease{.period_ns = 100, .window_ns = 80};
  EXPECT_EQ(LevelFor(lease, 0), 0);
  EXPECT_EQ(LevelFor(lease, 80), 0);
  EXPECT_EQ(LevelFor(lease, 81), 1);
  EXPECT_EQ(LevelFor(lease, 180), 1);
  EXPECT_EQ(LevelFor(lease, 181), 2);
  EXPECT_EQ(LevelFor(lease, INT64_MAX), kMostLevel);
}

TEST(LoopOfGeneration, EachLoopIsFirstOnceARound) {
  for (const size_t loops : {1u, 2u, 3u, 4u, 12u}) {
    for (uint64_t round = 0; round < 5; ++round) {
      std::set<size_t> seen;
      for (uint64_t i = 0; i < loops; ++i)
        seen.insert(*LoopOfGeneration(round * loops + i, loops, [](size_t) { return true; }));
      EXPECT_EQ(seen.size(), loops);
    }
  }
}

// A loop whose windows begin at every 4th generation, among 4: it must get its turn.
TEST(LoopOfGeneration, LongWindowsAreNotStarved) {
  std::set<size_t> seen;
  for (uint64_t generation = 0; generation < 64; generation += 4)
    seen.insert(*LoopOfGeneration(generation, 4, [](size_t) { return true; }));
  EXPECT_EQ(seen.size(), 4u);
}

TEST(LoopOfGeneration, NodesAgreeOnWhatIsOpenOnBoth) {
  const auto all = [](size_t) { return true; };
  const auto some = [](size_t loop) { return loop != 2; };
  int same = 0;
  for (uint64_t generation = 0; generation < 400; ++generation) {
    const size_t a = *LoopOfGeneration(generation, 4, all);
    const size_t b = *LoopOfGeneration(generation, 4, some);
    if (a != 2) {
      EXPECT_EQ(a, b);
    }
    same += a == b ? 1 : 0;
  }
  EXPECT_EQ(same, 300);
  EXPECT_EQ(LoopOfGeneration(1, 4, [](size_t) { return false; }), std::nullopt);
  EXPECT_EQ(LoopOfGeneration(1, 0, all), std::nullopt);
}

// The clock of the node is 70 s behind; answers wander a while there and back, unevenly.
TEST(ClockExchange, TheTruthIsWithinTheError) {
  ClockExchange exchange;
  EXPECT_EQ(exchange.Best(kSecond), std::nullopt);
  const std::vector<std::pair<int64_t, int64_t>> ways = {
      {9 * kMs, 0}, {0, 30 * kMs}, {100'000, 300'000}, {5 * kMs, 5 * kMs}};
  int64_t job = 100 * kSecond;
  for (const auto& [there, back] : ways) {
    exchange.Learn(job, job + there + back, job + there - 70 * kSecond);
    job += 100 * kMs;
  }
  const ClockReading best = *exchange.Best(job);
  EXPECT_EQ(best.error_ns, 200'000);
  EXPECT_LE(std::abs(best.here_ns + 70 * kSecond - best.job_ns), best.error_ns);
}

TEST(ClockExchange, AnOldReadingGivesWayToALessExactNewOne) {
  ClockExchange exchange;
  exchange.Learn(kSecond, kSecond + 2000, 500);
  exchange.Learn(61 * kSecond, 61 * kSecond + 2 * kMs, 60 * kSecond);
  EXPECT_EQ(exchange.Best(kSecond)->error_ns, 1000);
  // A minute is worth six milliseconds of drift.
  EXPECT_EQ(exchange.Best(61 * kSecond)->error_ns, kMs);
}

TEST(ClockExchange, IsBoundedAndTakesNoNonsense) {
  ClockExchange exchange;
  exchange.Learn(10, 9, 5);  // answered before it was asked
  exchange.Learn(10, 11, -1);
  exchange.Learn(0, 11, 5);
  EXPECT_EQ(exchange.readings(), 0u);
  for (int i = 0; i < 100; ++i) exchange.Learn(10 + i, 12 + i, 5 + i);
  EXPECT_EQ(exchange.readings(), ClockExchange::kReadings);
}

}  // namespace
}  // namespace perfd
