#include "core/analysis/saturation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/analysis/cluster_median.h"
#include "core/analysis/run_table.h"

namespace perfd {
namespace {

// Runs of one shadow in order, one thread.
class Shadow {
 public:
  explicit Shadow(uint32_t number, int32_t thread = 0) : number_(number), thread_(thread) {}
  Shadow& Run(const char* variant, double cycles, uint64_t iterations = 0,
              RunOutcome status = RunOutcome::kOk) {
    runs_.push_back({number_, order_++, thread_, variant, cycles, iterations, status});
    return *this;
  }
  const std::vector<RunSample>& runs() const { return runs_; }

 private:
  uint32_t number_;
  int32_t thread_;
  uint32_t order_ = 0;
  std::vector<RunSample> runs_;
};

std::vector<RunSample> Together(const std::vector<Shadow>& shadows) {
  std::vector<RunSample> all;
  for (const Shadow& shadow : shadows)
    all.insert(all.end(), shadow.runs().begin(), shadow.runs().end());
  return all;
}

VariantFigures Find(const Reduction& reduction, const std::string& variant,
                    int32_t thread = kTeam) {
  for (const VariantFigures& figures : reduction.figures) {
    if (figures.variant == variant && figures.thread == thread) return figures;
  }
  ADD_FAILURE() << "no figures of " << variant << " thread " << thread;
  return {};
}

std::string ReasonOf(const Reduction& reduction, const std::string& variant) {
  for (const Refusal& refusal : reduction.refusals) {
    if (refusal.variant == variant) return refusal.reason;
  }
  return "";
}

TEST(ReduceRuns, PairsWithTheMeanOfTheBaseBeforeAndAfter) {
  const Shadow shadow = Shadow(1).Run("REF", 100).Run("LS", 60).Run("REF", 120);
  const VariantFigures ls = Find(ReduceRuns(shadow.runs()), "LS");
  EXPECT_DOUBLE_EQ(ls.saturation.value, 60.0 / 110.0);
  EXPECT_DOUBLE_EQ(ls.cycles, 60);
  EXPECT_EQ(ls.base, "REF");
  EXPECT_EQ(ls.valid_runs, 1u);
  EXPECT_EQ(ls.shadows, 1u);
}

TEST(ReduceRuns, WithoutTheBaseBehindItNobodyKnowsWhetherTheMachineChanged) {
  // The shadow was ended after FP.
  const Shadow shadow = Shadow(1).Run("REF", 100).Run("LS", 60).Run("REF", 100).Run("FP", 30);
  const Reduction reduction = ReduceRuns(shadow.runs());
  EXPECT_DOUBLE_EQ(Find(reduction, "LS").saturation.value, 0.6);
  EXPECT_EQ(Find(reduction, "FP").valid_runs, 0u);
  EXPECT_EQ(ReasonOf(reduction, "FP"), "a valid run of REF on one side of it only");
  EXPECT_EQ(reduction.refusals.at(0).kind, RefusalKind::kMachineChanged)
      << "that says nothing of FP";
  EXPECT_EQ(Find(reduction, "REF").valid_runs, 2u) << "bases stand at the ends";
}

TEST(ReduceRuns, NeverPairsAcrossShadows) {
  const auto runs = Together({Shadow(1).Run("REF", 100), Shadow(2).Run("LS", 60)});
  const Reduction reduction = ReduceRuns(runs);
  EXPECT_EQ(Find(reduction, "LS").valid_runs, 0u);
  EXPECT_EQ(Find(reduction, "LS").saturation, Ratio{});
  EXPECT_EQ(ReasonOf(reduction, "LS"), "no valid run of REF beside it");
}

TEST(ReduceRuns, DriftOfTheMachineCancels) {
  // The machine doubles its time within the shadow; LS is always 0.8 of its surroundings.
  Shadow shadow(1);
  for (int i = 0; i < 5; ++i) {
    const double speed = 100 * (1 + 0.2 * i);
    shadow.Run("REF", speed).Run("LS", 0.8 * (speed + 10)).Run("REF", speed + 20);
  }
  const Reduction reduction = ReduceRuns(shadow.runs());
  EXPECT_NEAR(Find(reduction, "LS").saturation.value, 0.8, 1e-12);
  EXPECT_DOUBLE_EQ(reduction.base_drift, 2.0);
}

TEST(ReduceRuns, SubtractsTheProbe) {
  const Shadow shadow = Shadow(1).Run("REF", 130).Run("LS", 80).Run("CTRL", 30).Run("REF", 130);
  const Reduction reduction = ReduceRuns(shadow.runs(), {.probe_cycles = 30});
  EXPECT_DOUBLE_EQ(Find(reduction, "LS").saturation.value, 0.5);
  EXPECT_EQ(ReasonOf(reduction, "CTRL"), "not longer than the probe itself");  // exactly the probe
}

TEST(ReduceRuns, EachInvalidRunHasItsReason) {
  const Shadow shadow = Shadow(1)
                            .Run("COUNT", 300, 50)
                            .Run("REF", 100)
                            .Run("LS", 60, 49)
                            .Run("FP", 60, 50)
                            .Run("DL1", 1, 0, RunOutcome::kFault)
                            .Run("S2L", 1, 0, RunOutcome::kTimeout)
                            .Run("REF", 100)
                            .Run("NO_DIV", 1, 0, RunOutcome::kNotRun);
  const Reduction reduction = ReduceRuns(shadow.runs());
  EXPECT_EQ(ReasonOf(reduction, "LS"), "its trip count is not the loop's");
  EXPECT_EQ(ReasonOf(reduction, "FP"), "");
  EXPECT_EQ(ReasonOf(reduction, "DL1"), "the variant faulted in the shadow");
  EXPECT_EQ(ReasonOf(reduction, "S2L"), "the variant did not end in time");
  EXPECT_EQ(ReasonOf(reduction, "NO_DIV"), "the shadow ended before this run");
  EXPECT_EQ(Find(reduction, "DL1").invalid_runs, 1u);
  EXPECT_EQ(Find(reduction, "FP").valid_runs, 1u);
}

TEST(ReduceRuns, TripCountsOfRefServeWithoutCount) {
  const Shadow shadow = Shadow(1).Run("REF", 100, 50).Run("LS", 60, 51);
  EXPECT_EQ(ReasonOf(ReduceRuns(shadow.runs()), "LS"), "its trip count is not the loop's");
}

TEST(ReduceRuns, ASpreadOfTheBaseBeyondTheLimitVoidsTheRun) {
  const auto reduce = [](double after) {
    const Shadow shadow = Shadow(1).Run("REF", 100).Run("LS", 60).Run("REF", after);
    return Find(ReduceRuns(shadow.runs()), "LS").valid_runs;
  };
  EXPECT_EQ(reduce(125), 1u);  // the limit itself
  EXPECT_EQ(reduce(126), 0u);
}

TEST(ReduceRuns, ARemovalThatIsSlowerIsRefusedAsAWhole) {
  std::vector<Shadow> shadows;
  for (uint32_t i = 0; i < 4; ++i) {
    shadows.emplace_back(i);
    shadows.back().Run("REF", 100).Run("LS", 120).Run("S2L", 120).Run("REF", 100);
  }
  const Reduction reduction = ReduceRuns(Together(shadows));
  EXPECT_EQ(Find(reduction, "LS").valid_runs, 0u);
  EXPECT_EQ(Find(reduction, "LS").invalid_runs, 4u);
  EXPECT_EQ(Find(reduction, "LS").saturation, Ratio{});
  EXPECT_NE(ReasonOf(reduction, "LS"), "");
  EXPECT_EQ(Find(reduction, "S2L").valid_runs, 4u) << "it adds loads, so it may be slower";
}

TEST(ReduceRuns, ARemovalMayBeALittleSlower) {
  const auto reduce = [](double removed) {
    std::vector<Shadow> shadows;
    for (uint32_t i = 0; i < 4; ++i)
      shadows.push_back(Shadow(i).Run("REF", 100).Run("NO_RED", removed).Run("REF", 100));
    return Find(ReduceRuns(Together(shadows)), "NO_RED");
  };
  EXPECT_DOUBLE_EQ(reduce(108).saturation.value, 1.08);
  EXPECT_EQ(reduce(114.9).valid_runs, 4u);
  EXPECT_EQ(reduce(115.1).valid_runs, 0u);
}

TEST(ReduceRuns, TheTeamIsTheSlowestThreadOfEachRun) {
  const auto runs =
      Together({Shadow(1, 0).Run("REF", 100, 10).Run("LS", 90, 10).Run("REF", 100, 10),
                Shadow(1, 1).Run("REF", 200, 30).Run("LS", 50, 30).Run("REF", 200, 30)});
  const Reduction reduction = ReduceRuns(runs);
  EXPECT_DOUBLE_EQ(Find(reduction, "LS").saturation.value, 0.45);  // 90 / 200
  EXPECT_DOUBLE_EQ(Find(reduction, "LS", 0).saturation.value, 0.9);
  EXPECT_DOUBLE_EQ(Find(reduction, "LS", 1).saturation.value, 0.25);
  EXPECT_DOUBLE_EQ(Find(reduction, "REF").iterations, 40);
}

TEST(ReduceRuns, AFaultOfOneThreadVoidsTheTeamsRun) {
  const auto runs =
      Together({Shadow(1, 0).Run("REF", 100).Run("LS", 90).Run("REF", 100),
                Shadow(1, 1).Run("REF", 200).Run("LS", 50, 0, RunOutcome::kFault).Run("REF", 200)});
  const Reduction reduction = ReduceRuns(runs);
  EXPECT_EQ(Find(reduction, "LS").valid_runs, 0u);
  EXPECT_EQ(Find(reduction, "LS", 0).valid_runs, 1u);
  ASSERT_EQ(reduction.refusals.size(), 1u);
  EXPECT_EQ(reduction.refusals[0].count, 1u) << "counted once, not once per thread";
}

TEST(ReduceRuns, OtherBasesAreUsedWhereNamed) {
  const Shadow shadow =
      Shadow(1).Run("REF", 100).Run("REF_CTL", 200).Run("FP", 50).Run("REF_CTL", 200);
  const VariantFigures fp = Find(ReduceRuns(shadow.runs(), {.base_of = {{"FP", "REF_CTL"}}}), "FP");
  EXPECT_EQ(fp.base, "REF_CTL");
  EXPECT_DOUBLE_EQ(fp.saturation.value, 0.25);
}

TEST(ReduceRuns, StabilityIsPerIterationWhereTripsAreKnown) {
  const auto runs = Together({Shadow(1).Run("REF", 100, 10), Shadow(2).Run("REF", 220, 20),
                              Shadow(3).Run("REF", 240, 20)});
  const VariantFigures ref = Find(ReduceRuns(runs), "REF");
  EXPECT_NEAR(ref.stability, 0.1, 1e-12);  // 10, 11, 12 cycles per iteration
}

TEST(ReduceRuns, CountTellsTheTripsOfRunsThatDoNotCount) {
  const auto runs =
      Together({Shadow(1).Run("REF", 100).Run("COUNT", 300, 10),
                Shadow(2).Run("REF", 2200).Run("COUNT", 900, 200),
                Shadow(3).Run("REF", 1200).Run("COUNT", 900, 100), Shadow(4).Run("REF", 5)});
  const Reduction reduction = ReduceRuns(runs);
  const VariantFigures ref = Find(reduction, "REF");
  EXPECT_NEAR(ref.stability, 0.1, 1e-12)
      << "10, 11, 12 cycles per iteration; the fourth is not counted";
  EXPECT_DOUBLE_EQ(ref.iterations, 100);
  EXPECT_EQ(ref.valid_runs, 4u);
  EXPECT_EQ(reduction.figures.size(), 1u) << "COUNT has no figures";
}

TEST(ReduceRuns, ThreadsCanBeLeftOut) {
  const auto runs = Together({Shadow(1, 0).Run("REF", 100), Shadow(1, 1).Run("REF", 200)});
  EXPECT_EQ(ReduceRuns(runs).figures.size(), 3u);
  const Reduction team = ReduceRuns(runs, {.with_threads = false});
  ASSERT_EQ(team.figures.size(), 1u);
  EXPECT_EQ(team.figures[0].thread, kTeam);
  EXPECT_DOUBLE_EQ(team.figures[0].cycles, 200);
}

TEST(ReduceRuns, ScatterExcusesASlowRemovalOnlyUpToItsCap) {
  // Instances of 100 and 300 cycles, of unknown trip counts: a stability of 2, and noise of 4.
  const auto valid = [](double ls) {
    std::vector<Shadow> shadows;
    for (uint32_t i = 0; i < 6; ++i) {
      const double ref = i == 0 ? 100 : 300;
      shadows.emplace_back(i);
      shadows.back().Run("REF", ref).Run("LS", ls * ref).Run("REF", ref);
    }
    return Find(ReduceRuns(Together(shadows)), "LS").valid_runs;
  };
  EXPECT_EQ(valid(1.14), 6u);
  EXPECT_EQ(valid(1.16), 0u);
}

TEST(RatioBetween, ComparesAnyTwoVariants) {
  const Shadow shadow = Shadow(1).Run("NO_DIV", 80).Run("NO_RED+NO_DIV", 40).Run("NO_DIV", 80);
  EXPECT_DOUBLE_EQ(RatioBetween(shadow.runs(), "NO_RED+NO_DIV", "NO_DIV").value, 0.5);
  EXPECT_EQ(RatioBetween(shadow.runs(), "LS", "NO_DIV"), Ratio{});
}

TEST(StoppingRule, NeedsATightIntervalOfSeveralInstancesOrManyRuns) {
  VariantFigures figures;
  figures.saturation = {0.5, 0.47, 0.53};
  figures.valid_runs = 5;
  figures.shadows = 3;
  EXPECT_TRUE(IntervalIsTight(figures, 0.0301));
  EXPECT_FALSE(IntervalIsTight(figures, 0.0299));
  figures.shadows = 2;
  EXPECT_FALSE(IntervalIsTight(figures, 0.0301));
  figures.valid_runs = 30;
  EXPECT_FALSE(IsEnough(figures));
  figures.valid_runs = 31;
  EXPECT_TRUE(IsEnough(figures));
  EXPECT_FALSE(IntervalIsTight({}));
}

TEST(StoppingRule, BothHalvesOfTheIntervalCount) {
  VariantFigures figures;
  figures.valid_runs = 5;
  figures.shadows = 3;
  figures.saturation = {0.5, 0.4, 0.51};
  EXPECT_FALSE(IntervalIsTight(figures));
  figures.saturation = {0.5, 0.49, 0.6};
  EXPECT_FALSE(IntervalIsTight(figures));
  figures.saturation = {0.5, 0.49, 0.51};
  EXPECT_TRUE(IntervalIsTight(figures));
}

TEST(NoiseOf, IsTwiceTheStabilityAndNeverLessThanTheLeast) {
  EXPECT_DOUBLE_EQ(NoiseOf(0.04), 0.08);
  EXPECT_DOUBLE_EQ(NoiseOf(0.02), 0.05);
  EXPECT_DOUBLE_EQ(NoiseOf(0, 0.01), 0.01);
}

TEST(SortedQuantile, IsLinearBetweenTheValues) {
  const std::vector<double> values = {0, 10, 20};
  EXPECT_DOUBLE_EQ(SortedQuantile(values, 0.25), 5);
  EXPECT_DOUBLE_EQ(SortedQuantile(values, 1), 20);
  EXPECT_DOUBLE_EQ(SortedQuantile({}, 0.5), 0);
}

TEST(TripDeciles, AreExactOnElevenValues) {
  std::vector<uint64_t> counts;
  for (uint64_t i = 11; i > 0; --i) counts.push_back(i * 100);
  const TripCounts trips = TripDeciles(counts);
  EXPECT_EQ(trips.instances, 11u);
  for (size_t i = 0; i < 11; ++i)
    EXPECT_DOUBLE_EQ(trips.decile[i], static_cast<double>(i + 1) * 100);
  EXPECT_EQ(TripDeciles({}).instances, 0u);
}

TEST(OnlyRemoves, TellsRemovalsFromTransformations) {
  for (const char* name : {"LS", "FP", "NO_DIV", "NO_RED+NO_DIV", "GROUP(3)", "CTRL", "NO_STORE"})
    EXPECT_TRUE(OnlyRemoves(name)) << name;
  for (const char* name : {"REF", "DL1", "S2L", "PREFETCH(50)", "NO_DIV+DL1", "nonsense"})
    EXPECT_FALSE(OnlyRemoves(name)) << name;
}

TEST(ClusterMedian, IsTheMedianAndDeterministic) {
  const std::vector<ClusterValue> values = {{1, 3}, {1, 1}, {2, 2}, {2, 4}};
  const Ratio a = ClusterMedian(values);
  EXPECT_DOUBLE_EQ(a.value, 2.5);
  EXPECT_EQ(a, ClusterMedian(values));
  EXPECT_LE(a.low, a.value);
  EXPECT_GE(a.high, a.value);
  EXPECT_EQ(ClusterMedian({}), Ratio{});
}

TEST(ClusterMedian, OneClusterIsItsRangeAndNeverLessThanFivePercent) {
  EXPECT_EQ(ClusterMedian(std::vector<ClusterValue>{{7, 1.0}, {7, 1.01}, {7, 0.8}}),
            (Ratio{1.0, 0.8, 1.05}));
}

TEST(ClusterMedian, TakesTheFirstOfTooManyValues) {
  std::vector<ClusterValue> values(kMaxValues, {1, 1.0});
  values.insert(values.end(), 2 * kMaxValues, {2, 9.0});
  EXPECT_EQ(ClusterMedian(values).value, 1);
}

TEST(ClusterMedian, NoIntervalReachesBelowZero) {
  EXPECT_EQ(ClusterMedian(std::vector<ClusterValue>{{1, 0.001}, {2, 1.0}, {3, 1.001}}).low, 0);
}

TEST(ClusterMedian, OtherSeedsDrawOtherClusters) {
  std::vector<ClusterValue> values;
  for (uint32_t i = 0; i < 30; ++i) values.push_back({i, 1 + 0.01 * ((i * 37) % 31)});
  EXPECT_NE(ClusterMedian(values, 1), ClusterMedian(values, 2));
}

TEST(OfAnotherRank, IsAsFarAwayAsThoseThatWereMeasured) {
  const Ratio own{0.5, 0.49, 0.51};
  // Three ranks, 0.1 apart: t(2) = 4.303, s = 0.1, sqrt(1 + 1/3).
  const double away = 4.303 * 0.1 * std::sqrt(4.0 / 3);
  const Ratio some = OfAnotherRank(own, std::vector{0.4, 0.5, 0.6}, {});
  EXPECT_EQ(some.value, 0.5);
  EXPECT_NEAR(some.high, 0.5 + std::hypot(0.01, away), 1e-3);
  EXPECT_NEAR(some.low, std::max(0.0, 0.5 - std::hypot(0.01, away)), 1e-3);
  // Others that agree to the last digit need not: their times pool with them, but never below their own spread.
  const Ratio timed = OfAnotherRank(own, std::vector{0.4, 0.5, 0.6}, std::vector{9.0, 10.0, 11.0});
  EXPECT_LT(timed.high, some.high) << "four degrees of freedom";
  EXPECT_GE(timed.high, 0.5 + 2.776 * 0.1 * std::sqrt(4.0 / 3));
}

TEST(OfAnotherRank, OneRankIsAsFarAwayAsTheTimesOfAll) {
  const Ratio own{0.5, 0.49, 0.51};
  // 9 and 11 seconds: 14 % of their mean; t(1) = 12.706.
  const double away = 12.706 * 0.5 * std::sqrt(2.0) / 10 * std::sqrt(2.0);
  const Ratio one = OfAnotherRank(own, std::vector{0.5}, std::vector{9.0, 11.0});
  EXPECT_NEAR(one.high, 0.5 + std::hypot(0.01, away), 1e-3);
  EXPECT_EQ(one.low, 0);
  const Ratio alike = OfAnotherRank(own, std::vector{0.5}, std::vector{10.0, 10.0, 10.0});
  EXPECT_EQ(alike, own) << "nothing says that they differ";
  EXPECT_EQ(OfAnotherRank(own, std::vector{0.5}, {}), (Ratio{0.5, 0, 1}));
  EXPECT_EQ(OfAnotherRank(own, std::vector{0.5}, std::vector{3.0}), (Ratio{0.5, 0, 1}));
  EXPECT_EQ(OfAnotherRank({1.2, 1.1, 1.3}, std::vector{1.2}, {}), (Ratio{1.2, 0, 1.3}));
}

TEST(MedianQuotient, DividesTheMedians) {
  const std::vector<ClusterValue> shadow = {{1, 102}, {2, 104}, {3, 106}};
  const std::vector<ClusterValue> live = {{1, 100}, {2, 100}, {3, 100}};
  const Ratio fidelity = MedianQuotient(shadow, live);
  EXPECT_DOUBLE_EQ(fidelity.value, 1.04);
  EXPECT_GE(fidelity.high, 1.06);
  EXPECT_EQ(MedianQuotient(shadow, {}), Ratio{});
  EXPECT_EQ(MedianQuotient(shadow, std::vector<ClusterValue>{{1, 0}}), Ratio{});
}

// Known truth: the median of ratio 0.7, instances that differ by 4 % and runs by 2 %. The 95 % interval must hold the
// truth about as often as it says; treating the runs as independent must not (that is why clusters are drawn).
double Coverage(int shadows, int runs_per_shadow, bool clustered) {
  std::mt19937_64 random(42);
  std::normal_distribution<double> normal;
  constexpr int kTrials = 400;
  int hits = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<ClusterValue> values;
    for (int s = 0; s < shadows; ++s) {
      const double instance = 0.04 * normal(random);
      for (int r = 0; r < runs_per_shadow; ++r) {
        const auto cluster = static_cast<uint32_t>(clustered ? s : s * runs_per_shadow + r);
        values.push_back({cluster, 0.7 * (1 + instance + 0.02 * normal(random))});
      }
    }
    const Ratio ratio = ClusterMedian(values, static_cast<uint64_t>(trial));
    hits += ratio.low <= 0.7 && 0.7 <= ratio.high;
  }
  return static_cast<double>(hits) / kTrials;
}

TEST(ClusterMedian, CoversTheTruthAboutAsOftenAsItSays) {
  // 400 trials at 95 % have a standard error of 1.1 %; three of them below, and some extra width is allowed above.
  for (const int shadows : {5, 8, 16, 31})
    EXPECT_GE(Coverage(shadows, 4, true), 0.917) << shadows << " shadows";
  EXPECT_GE(Coverage(3, 4, true), 0.9) << "the median of three is coarse";
  EXPECT_LT(Coverage(8, 8, false), 0.85) << "the check itself: wrong clusters must be caught";
}

TEST(ClusterMedian, NarrowsWithMoreInstances) {
  const auto width = [](uint32_t shadows) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    std::vector<ClusterValue> values;
    for (uint32_t s = 0; s < shadows; ++s) values.push_back({s, 0.7 + 0.03 * normal(random)});
    const Ratio ratio = ClusterMedian(values);
    return ratio.high - ratio.low;
  };
  EXPECT_LT(width(100), width(10) / 2);
}

}  // namespace
}  // namespace perfd
