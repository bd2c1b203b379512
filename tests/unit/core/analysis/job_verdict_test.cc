#include "core/analysis/job_verdict.h"

#include <gtest/gtest.h>

#include "core/analysis/injection_total.h"
#include "core/analysis/job_pauses.h"
#include "tests/unit/core/analysis/some_figures.h"

namespace perfd {
namespace {

LoopVerdict Judge(const std::vector<LoopMeasurement>& loops, LoopTime time = {},
                  JudgeOptions options = {}) {
  std::vector<const LoopMeasurement*> ranks;
  for (const LoopMeasurement& loop : loops) ranks.push_back(&loop);
  return JudgeLoop(ranks, time, options);
}

LoopMeasurement Memory(int32_t rank, double ls = 0.97) {
  return Loop({Figures("LS", ls), Figures("FP", 0.2), Figures("DL1", 0.3)}, rank);
}

LoopMeasurement Arithmetic(int32_t rank) {
  return Loop({Figures("LS", 0.3), Figures("FP", 0.97), Figures("DL1", 0.95)}, rank);
}

TEST(JudgeLoop, SaysThatAllAgree) {
  const LoopVerdict loop = Judge({Memory(0), Memory(1), Memory(2)});
  EXPECT_EQ(loop.bound, Bound::kMemory);
  EXPECT_TRUE(loop.sure);
  EXPECT_EQ(loop.agreement, "all 3 ranks agree");
  EXPECT_EQ(Judge({Memory(0)}).agreement, "1 rank");
}

TEST(JudgeLoop, ShowsThoseThatDiffer) {
  const LoopVerdict loop = Judge({Memory(0), Memory(1), Memory(2), Arithmetic(3)});
  EXPECT_EQ(loop.bound, Bound::kMemory);
  EXPECT_EQ(loop.agreement, "3 of 4 ranks memory bound, 1 arithmetic bound");
  ASSERT_EQ(loop.ranks.size(), 4u);
  EXPECT_EQ(loop.ranks[3].outlier, "arithmetic bound where most are memory bound");
  EXPECT_EQ(loop.ranks[0].outlier, "");
  ASSERT_FALSE(loop.variants.empty());
  EXPECT_EQ(loop.variants[0].variant, "LS");
  EXPECT_DOUBLE_EQ(loop.variants[0].rank_min, 0.3);
  EXPECT_EQ(loop.variants[0].min_rank, "rank 3 on n1");
  EXPECT_DOUBLE_EQ(loop.variants[0].rank_max, 0.97);
  EXPECT_DOUBLE_EQ(loop.variants[0].saturation.value, 0.97) << "a rank's figure, not the mean";
}

TEST(JudgeLoop, SameBoundButFarFromTheMedianIsAnOutlierToo) {
  const LoopVerdict loop = Judge({Memory(0), Memory(1), Memory(2, 0.7)});
  EXPECT_EQ(loop.ranks[2].outlier, "LS 0.70 where the median rank has 0.97");
}

TEST(JudgeLoop, DoesNotDependOnTheOrder) {
  const std::vector<LoopMeasurement> loops = {Memory(0), Arithmetic(1), Memory(2), Memory(3, 0.7)};
  const std::vector<LoopMeasurement> turned(loops.rbegin(), loops.rend());
  EXPECT_EQ(Judge(loops), Judge(turned));
}

TEST(JudgeLoop, GainsUseTheSlowestRank) {
  LoopTime time{.share = 0.4,
                .share_low = 0.3,
                .share_high = 0.5,
                .slowest_share = 0.8,
                .slowest_node = "n1",
                .slowest_pid = 101,
                .slowest_rank = "rank 1 on n1"};
  const LoopVerdict loop = Judge({Memory(0), Arithmetic(1), Memory(2)}, time);
  ASSERT_EQ(loop.gains.size(), 1u);
  EXPECT_NEAR(loop.gains[0].of_job.value, 0.8 * 0.05, 1e-12);
  EXPECT_NEAR(loop.gains[0].of_job.low, 0.6 * 0.04, 1e-12);
  EXPECT_NEAR(loop.gains[0].of_job.high, 1.0 * 0.06, 1e-12);
  EXPECT_EQ(loop.level, DataLevel::kL1);
}

// The loop of a job of two ranks: divisions were measured on one of them, and not on the one that all wait for.
TEST(JudgeLoop, GainsUseWhatSomeRanksHave) {
  LoopMeasurement slowest = Arithmetic(0), other = Arithmetic(1);
  other.figures.push_back(Figures("NO_DIV", 0.55));
  LoopTime time{.share = 0.9,
                .share_low = 0.9,
                .share_high = 0.9,
                .slowest_share = 0.9,
                .slowest_node = "n1",
                .slowest_pid = 100,
                .slowest_rank = "rank 0 on n1",
                .rank_times = {10, 9}};
  LoopVerdict loop = Judge({slowest, other}, time);
  ASSERT_EQ(loop.gains.size(), 2u);
  EXPECT_EQ(loop.gains[0].variant, "NO_DIV");
  EXPECT_EQ(loop.gains[0].ranks, (MeasuredRanks{1, 2}));
  EXPECT_NEAR(loop.gains[0].of_job.value, 0.9 * 0.45, 1e-12);
  EXPECT_LT(loop.gains[0].of_job.low, 0.9 * 0.44 - 0.05) << "the other rank may differ";
  EXPECT_GT(loop.gains[0].of_job.high, 0.9 * 0.46 + 0.05);
  EXPECT_LE(loop.gains[0].of_job.high, 0.9);
  EXPECT_EQ(loop.gains[1].ranks, (MeasuredRanks{2, 2}));
  EXPECT_NEAR(loop.gains[1].of_job.low, 0.9 * 0.04, 1e-12) << "all have it: as it was measured";
  ASSERT_EQ(loop.variants.back().variant, "NO_DIV");
  EXPECT_EQ(loop.variants.back().ranks, (MeasuredRanks{1, 2}));
  EXPECT_LT(loop.variants.back().saturation.low, 0.5);
  EXPECT_EQ(loop.variants.front().saturation, slowest.figures.front().saturation);
  time.slowest_pid = 101;  // it is the one that has it
  loop = Judge({slowest, other}, time);
  EXPECT_EQ(loop.gains[0].ranks, (MeasuredRanks{1, 2}));
  EXPECT_NEAR(loop.gains[0].of_job.low, 0.9 * 0.44, 1e-12) << "nobody waits for the others";
  time.rank_times.clear();
  time.slowest_pid = 100;
  EXPECT_EQ(Judge({slowest, other}, time).gains[0].of_job.low, 0) << "nothing says how far";
}

TEST(JudgeLoop, RanksThatNeverEnteredTheLoopAreNotMissed) {
  LoopMeasurement never = Loop({}, 1);
  never.state = MeasureState::kNeverEntered;
  const LoopVerdict loop = Judge({Memory(0), never});
  EXPECT_EQ(loop.variants[0].ranks, (MeasuredRanks{1, 1}));
  EXPECT_EQ(loop.variants[0].saturation, Memory(0).figures[0].saturation);
  LoopMeasurement refused = never;
  refused.state = MeasureState::kRefused;
  EXPECT_EQ(Judge({Memory(0), refused}).variants[0].ranks, (MeasuredRanks{1, 2}));
}

TEST(JudgeLoop, OnlyFiguresThatMayBePricedCountForAGain) {
  LoopMeasurement far = Memory(0), near = Memory(1);
  far.fidelity = {3, 2.9, 3.1};
  near.fidelity = {1, 0.9, 1.1};
  LoopTime time{.share = 0.5,
                .slowest_share = 0.5,
                .slowest_node = "n1",
                .slowest_pid = 100,
                .slowest_rank = "",
                .rank_times = {1, 1}};
  const LoopVerdict loop = Judge({far, near}, time);
  ASSERT_EQ(loop.gains.size(), 1u);
  EXPECT_EQ(loop.gains[0].ranks, (MeasuredRanks{1, 2}));
  EXPECT_EQ(loop.bound, Bound::kMemory);
  EXPECT_EQ(loop.fidelity, near.fidelity) << "of the rank that has the name";
  near.fidelity = far.fidelity;
  EXPECT_TRUE(Judge({far, near}, time).gains.empty());
}

// One of two is not most of them.
TEST(JudgeLoop, NoNameWithoutAMajority) {
  LoopVerdict loop = Judge({Memory(0), Arithmetic(1)});
  EXPECT_EQ(loop.bound, Bound::kUnknown);
  EXPECT_EQ(loop.why, Silence::kRanksDiffer);
  EXPECT_FALSE(loop.sure);
  EXPECT_EQ(loop.agreement, "1 of 2 ranks memory bound, 1 arithmetic bound");
  EXPECT_EQ(Judge({Memory(0), Arithmetic(1), Memory(2)}).bound, Bound::kMemory);
  const LoopMeasurement both = Loop({Figures("LS", 0.99), Figures("FP", 0.99)}, 3);
  EXPECT_EQ(Judge({Memory(0), Arithmetic(1), Memory(2), both}).why, Silence::kRanksDiffer);
}

TEST(JudgeLoop, OneRunHasNoInterval) {
  LoopMeasurement loop = Memory(0);
  loop.figures[0].valid_runs = 2;
  EXPECT_FALSE(Judge({loop}).variants[0].saturation.has_interval());
  loop.figures[0].valid_runs = 3;
  EXPECT_TRUE(Judge({loop}).variants[0].saturation.has_interval());
  LoopMeasurement open = Loop({}, 1);
  loop.figures[0].valid_runs = 2;
  EXPECT_FALSE(Judge({loop, open}).variants[0].saturation.has_interval());
}

// Figures of all instances are those of the median one: most are short here, and most of the time is in the long ones.
TEST(JudgeLoop, NoNameThatTheInstancesWithMostOfTheTimeDoNotHave) {
  const auto base = [](double cycles) {
    VariantFigures ref = Figures("REF", 1);
    ref.cycles = cycles;
    return ref;
  };
  LoopMeasurement loop = Arithmetic(0);
  loop.trip_classes = {{3, 4, 20, {base(10), Figures("LS", 0.2), Figures("FP", 0.99)}},
                       {70, 90, 5, {base(1000), Figures("LS", 0.99), Figures("FP", 0.2)}}};
  EXPECT_EQ(Judge({loop}).why, Silence::kContradictory);
  EXPECT_EQ(Judge({loop}).trips.verdicts[1].bound, Bound::kMemory);
  loop.trip_classes[1].figures[0].cycles = 10;
  EXPECT_EQ(Judge({loop}).bound, Bound::kArithmetic);
}

TEST(JudgeLoop, ClassesAreAsSilentAsTheirRank) {
  LoopMeasurement loop = Memory(0);
  loop.trip_classes = {{3, 4, 4, {Figures("LS", 0.2), Figures("FP", 0.99)}},
                       {70, 90, 5, {Figures("LS", 0.99), Figures("FP", 0.2)}}};
  loop.fidelity = {3, 2.9, 3.1};
  LoopMeasurement median = Memory(1);
  median.fidelity = {1, 0.9, 1.1};  // is shown, and is not that of the classes
  LoopVerdict judged = Judge({loop, median});
  ASSERT_EQ(judged.trips.verdicts.size(), 2u);
  for (const ClassVerdict& verdict : judged.trips.verdicts)
    EXPECT_EQ(verdict.why, Silence::kFidelity);
  EXPECT_EQ(Joined(judged.remarks).find("trip count"), std::string::npos);
  loop.fidelity = {};
  loop.references = {{.instruction = 1, .writes = true, .highest = 8, .shared = true}};
  judged = Judge({loop});
  for (const ClassVerdict& verdict : judged.trips.verdicts)
    EXPECT_EQ(verdict.why, Silence::kSharedLines);
  EXPECT_EQ(Joined(judged.remarks).find("trip count"), std::string::npos);
}

TEST(JudgeLoop, KeepsRefusalsOpenVariantsAndCosts) {
  LoopMeasurement refused = Loop({}, 0);
  refused.state = MeasureState::kRefused;
  refused.reason = "seccomp filter";
  LoopMeasurement open = Loop({}, 1);
  open.state = MeasureState::kOpen;
  open.open = {"DL1"};
  open.refusals = {{"NO_DIV", 0x20, "x87", 2}};
  open.cost.pause_ns = 5;
  open.cost.longest_pause_ns = 5;
  LoopMeasurement third = open;
  third.pid = 7;
  third.open = {"FP"};
  third.cost.longest_pause_ns = 3;
  const LoopVerdict loop = Judge({refused, open, third});
  EXPECT_EQ(loop.state, MeasureState::kOpen);
  EXPECT_EQ(Joined(loop.open), "DL1 FP");
  ASSERT_EQ(loop.refusals.size(), 2u);
  EXPECT_EQ(loop.refusals[0].reason, "seccomp filter");
  EXPECT_EQ(loop.refusals[1].count, 4u);
  EXPECT_EQ(loop.cost.pause_ns, 10);
  EXPECT_EQ(loop.cost.longest_pause_ns, 5);
  EXPECT_EQ(Judge({refused}).state, MeasureState::kRefused);
}

TEST(JudgeLoop, CutsRanksButKeepsOutliersAndTheWholeDistribution) {
  std::vector<LoopMeasurement> loops;
  for (int32_t rank = 0; rank < 9; ++rank) loops.push_back(Memory(rank));
  loops.push_back(Arithmetic(9));
  const LoopVerdict loop = Judge(loops, {}, {.ranks = 2});
  ASSERT_EQ(loop.ranks.size(), 2u);
  EXPECT_EQ(loop.ranks_left_out, 8u);
  EXPECT_EQ(loop.ranks[0].measurement.rank, 9);
  EXPECT_EQ(loop.variants[0].ranks, (MeasuredRanks{10, 10}));
}

TEST(JudgeLoop, SaysWhenThreadsDiffer) {
  LoopMeasurement loop = Memory(0);
  loop.figures.push_back(Figures("LS", 0.2, 0.01, 1));
  loop.figures.push_back(Figures("FP", 0.98, 0.01, 1));
  EXPECT_NE(Joined(Judge({loop}).remarks).find("in 1 rank some threads"), std::string::npos);
  EXPECT_EQ(Joined(Judge({Memory(0)}).remarks).find("threads"), std::string::npos);
}

TEST(JudgeLoop, OfTwoRanksTheLowerIsTheMedian) {
  const LoopVerdict loop = Judge({Memory(0, 0.97), Memory(1, 0.7)});
  EXPECT_DOUBLE_EQ(loop.variants[0].saturation.value, 0.7);
  EXPECT_EQ(loop.ranks[0].outlier, "") << "two ranks: neither is an outlier";
}

TEST(JudgeLoop, NoOutlierWithinItsIntervalOrNearTheMedian) {
  LoopMeasurement wide = Memory(2);
  wide.figures[0] = Figures("LS", 0.7, 0.28);
  EXPECT_EQ(Judge({Memory(0), Memory(1), wide}).ranks[2].outlier, "");
  EXPECT_EQ(Judge({Memory(0), Memory(1), Memory(2, 0.83)}).ranks[2].outlier, "");
  EXPECT_NE(Judge({Memory(0), Memory(1), Memory(2, 0.81)}).ranks[2].outlier, "");
}

TEST(JudgeLoop, IsAsSureAsTheLeastSureRank) {
  LoopMeasurement wide = Memory(2);
  wide.figures[1] = Figures("FP", 0.7, 0.25);
  EXPECT_EQ(VerdictOf(wide).bound, Bound::kMemory);
  EXPECT_FALSE(Judge({Memory(0), Memory(1), wide}).sure);
}

TEST(JudgeLoop, RanksWithoutVerdictDoNotVote) {
  const LoopVerdict loop = Judge({Loop({}, 0), Loop({}, 1), Memory(2)});
  EXPECT_EQ(loop.bound, Bound::kMemory);
  EXPECT_EQ(loop.agreement, "1 rank");
  EXPECT_EQ(loop.ranks_measured, 1u);
  EXPECT_EQ(loop.ranks_total, 3u);
}

TEST(JudgeLoop, ARefusedRankDecidesNothingThoughItIsTheSlowest) {
  LoopMeasurement refused = Loop({}, 1);
  refused.state = MeasureState::kRefused;
  LoopTime time;
  time.slowest_share = 0.8;
  time.slowest_node = "n1";
  time.slowest_pid = 101;
  EXPECT_EQ(Judge({Memory(0), refused}, time).gains.size(), 1u);
}

TEST(JudgeLoop, NoGainIsOfMoreThanAllTime) {
  const LoopTime time{.share = 0.4,
                      .share_low = 0.3,
                      .share_high = 0.6,
                      .slowest_share = 0.8,
                      .slowest_node = "n1",
                      .slowest_pid = 100,
                      .slowest_rank = "rank 0 on n1"};
  EXPECT_NEAR(Judge({Memory(0)}, time).gains.at(0).of_job.high, 1 - 0.29, 1e-12);
}

TEST(JudgeLoop, IsMeasuredWhenSomeRankIs) {
  LoopMeasurement open = Memory(1);
  open.state = MeasureState::kOpen;
  EXPECT_EQ(Judge({open, Memory(0)}).state, MeasureState::kMeasured);
}

TEST(JudgeLoop, NeverEnteredSaysSo) {
  LoopMeasurement never = Loop({}, 0);
  never.state = MeasureState::kNeverEntered;
  never.reason = "no thread entered the loop";
  const LoopVerdict loop = Judge({never});
  EXPECT_EQ(loop.state, MeasureState::kNeverEntered);
  ASSERT_EQ(loop.refusals.size(), 1u);
  EXPECT_EQ(loop.refusals[0].reason, "no thread entered the loop");
}

// FP never counts; the data are in L1.
LoopMeasurement WithinL1(int32_t rank) {
  LoopMeasurement loop = Loop({Figures("LS", 0.98), Figures("DL1", 1)}, rank);
  loop.refusals = {{"FP", 0, "slower than its base", 9}};
  return loop;
}

TEST(JudgeLoop, AWeakerVerdictContradictsNoneAndYieldsToAFullOne) {
  LoopVerdict loop = Judge({WithinL1(0), WithinL1(1)});
  EXPECT_EQ(loop.bound, Bound::kWithinL1);
  EXPECT_TRUE(loop.sure);
  EXPECT_EQ(loop.level, DataLevel::kL1);
  EXPECT_EQ(loop.agreement, "all 2 ranks agree");
  loop = Judge({WithinL1(0), WithinL1(1), Arithmetic(2)});
  EXPECT_EQ(loop.bound, Bound::kArithmetic);
  EXPECT_EQ(loop.agreement, "2 of 3 ranks not bound beyond L1, 1 arithmetic bound");
  EXPECT_EQ(loop.ranks[0].outlier, "");
  EXPECT_EQ(loop.ranks[1].outlier, "");
}

TEST(JudgeLoop, AnUnknownVerdictSaysWhy) {
  const LoopMeasurement noisy = Loop({Figures("LS", 0.8, 0.5), Figures("FP", 0.7)}, 1);
  const LoopVerdict loop = Judge({Loop({}, 0), noisy});
  EXPECT_EQ(loop.bound, Bound::kUnknown);
  EXPECT_EQ(loop.why, Silence::kTooNoisy);
  EXPECT_EQ(loop.ranks[0].why, Silence::kNone);
  EXPECT_EQ(loop.ranks[1].why, Silence::kTooNoisy);
  EXPECT_EQ(Judge({noisy, Memory(2)}).why, Silence::kNone) << "another rank has a verdict";
  EXPECT_EQ(Judge({noisy, Memory(2)}).remarks.at(0).find("rank 1 on n1: too noisy"), 0u)
      << "of the rank by whose LS the loop is shown";
  EXPECT_EQ(Judge({noisy}).remarks.at(0).find("too noisy"), 0u);
}

TEST(JudgeLoop, ShowsTheTripClassesOfTheRankThatGainsReferTo) {
  LoopMeasurement first = Memory(0);
  LoopMeasurement second = Memory(1);
  first.trip_classes = {{1, 2, 4, {Figures("LS", 0.9), Figures("FP", 0.9)}}};
  second.trip_classes = {{3, 4, 4, {Figures("LS", 0.2), Figures("FP", 0.99)}},
                         {70, 90, 5, {Figures("LS", 0.99), Figures("FP", 0.2)}}};
  const LoopTime time{
      .slowest_share = 0.5, .slowest_node = "n1", .slowest_pid = 101, .slowest_rank = ""};
  LoopVerdict loop = Judge({first, second}, time);
  EXPECT_EQ(loop.trips.classes, second.trip_classes);
  EXPECT_EQ(loop.trips.rank, "rank 1 on n1");
  EXPECT_NE(Joined(loop.remarks)
                .find("the verdict depends on the trip count: arithmetic bound from "
                      "3 to 4 trips, memory bound from 70 to 90 trips"),
            std::string::npos);
  second.trip_classes.clear();
  loop = Judge({first, second}, time);
  EXPECT_EQ(loop.trips.rank, "rank 0 on n1") << "the slowest has none";
  EXPECT_TRUE(Judge({second}, time).trips.classes.empty());
}

TEST(JudgeLoop, ShowsEachListingOnce) {
  LoopMeasurement a = Memory(0), b = Memory(1);
  a.listings = {{"LS", {{0x10, "addsd", "nop"}}}};
  b.listings = {a.listings[0], {"FP", {}}};
  const LoopVerdict loop = Judge({a, b});
  ASSERT_EQ(loop.listings.size(), 2u);
  EXPECT_EQ(loop.listings[0], a.listings[0]);
  for (const RankVerdict& rank : loop.ranks) EXPECT_TRUE(rank.measurement.listings.empty());
}

TEST(JudgeLoop, FidelityIsThatOfTheMedianRank) {
  std::vector<LoopMeasurement> ranks = {Memory(0), Memory(1), Memory(2), Memory(3)};
  ranks[0].fidelity = {1.2, 1.1, 1.3};
  ranks[1].fidelity = {0.9, 0.8, 1.0};
  ranks[2].fidelity = {1.0, 0.9, 1.1};
  ranks[2].protocol = "cold";
  const LoopVerdict loop = Judge(ranks);  // the last has none
  EXPECT_EQ(loop.fidelity, ranks[2].fidelity);
  EXPECT_EQ(loop.protocol, "cold");
}

TEST(PauseSet, CountsOverlapsOnceInAnyOrder) {
  const std::vector<PauseSpan> spans = {{10, 20}, {15, 30}, {40, 50}, {30, 35}, {0, 100}, {5, 5}};
  PauseSet forward;
  PauseSet backward;
  for (size_t i = 0; i + 2 < spans.size(); ++i) forward.Add(spans[i].begin_ns, spans[i].end_ns);
  EXPECT_EQ(forward.TotalNs(), 35);  // 10..35 and 40..50
  EXPECT_EQ(forward.spans().size(), 2u);
  forward.Add(0, 100);
  for (auto span = spans.rbegin(); span != spans.rend(); ++span)
    backward.Add(span->begin_ns, span->end_ns);
  EXPECT_EQ(forward, backward);
  PauseSet merged = forward;
  merged.Merge(forward);
  EXPECT_EQ(merged, forward);
}

TEST(PauseSet, IsBounded) {
  PauseSet set;
  const auto many = static_cast<int64_t>(PauseSet::kMaxSpans);
  for (int64_t i = 0; i < many + 3; ++i) set.Add(10 * i, 10 * i + 1);
  EXPECT_EQ(set.spans().size(), PauseSet::kMaxSpans);
  EXPECT_EQ(set.TotalNs(), many + 3);
}

TEST(TotalInjection, AddsWhatIsNotOnRecordAndTheWorstRank) {
  LoopMeasurement a = Loop({}, 0);
  a.cost.pause_ns = 100;
  a.cost.later_fault_ns = 7;
  a.cost.shadow_cpu_ns = 1000;  // of other CPUs, perhaps: no wall time
  LoopMeasurement b = Loop({}, 1);
  b.cost.stop_ns = 50;
  b.cost.shadow_cpu_ns = 20;
  b.cost.later_fault_ns = 5;
  b.cost.pass_through_ns = 4;
  JobPauses pauses;
  pauses.Add("n", 0, 80);  // 120 ns of pauses, 40 of them at the same time
  const std::vector<const LoopMeasurement*> loops = {&a, &b};
  const InjectionTotal total = TotalInjection(loops, pauses, 120, 1000);
  EXPECT_EQ(total.added_wall_ns, 80 + 30 + 9);
  EXPECT_EQ(total.sum.shadow_cpu_ns, 1020);
  EXPECT_DOUBLE_EQ(total.added_ratio, 0.119);
  EXPECT_EQ(TotalInjection(loops, pauses, 150, 0).added_wall_ns, 80 + 9);
  EXPECT_EQ(total.shared_ns, 0);
}

TEST(TotalInjection, CountsPausesOfNodesThatOverlapOnce) {
  JobPauses pauses;
  pauses.Add("a", 0, 80);
  pauses.Add("b", 500, 600);
  EXPECT_EQ(TotalInjection({}, pauses, 180, 0).added_wall_ns, 180);
  pauses.AddLeased("a", {.generation = 3, .begin_ns = 10, .pause_ns = 80, .error_ns = 1});
  pauses.AddLeased("b", {.generation = 3, .begin_ns = 15, .pause_ns = 100, .error_ns = 1});
  const InjectionTotal total = TotalInjection({}, pauses, 180, 0);
  EXPECT_EQ(total.added_wall_ns, 100);
  EXPECT_EQ(total.shared_ns, 80);
  EXPECT_EQ(total.pauses_lost, 0u);
}

TEST(JudgeLoop, SaysWhyRanksAreNotFinished) {
  LoopMeasurement done = Loop({}, 0), late = Loop({}, 1), other = Loop({}, 2), same = Loop({}, 3);
  done.reason = "it is over";  // of a measured one: no matter
  for (LoopMeasurement* open : {&late, &other, &same}) open->state = MeasureState::kOpen;
  late.reason = same.reason = "the profile ended first";
  other.reason = "it was hot no more";
  const std::string remarks = Joined(Judge({done, late, other, same}).remarks);
  EXPECT_NE(remarks.find("open in 2 ranks: the profile ended first"), std::string::npos);
  EXPECT_EQ(remarks.find("it is over"), std::string::npos);
  late.reason.clear();  // it is still being measured
  EXPECT_EQ(Joined(Judge({late}).remarks).find("open in"), std::string::npos);
}

TEST(JudgeLoop, ADryRunSaysWhereCopiesWouldRunInPlace) {
  LoopMeasurement would = Loop({}, 0), would_not = Loop({}, 1);
  for (LoopMeasurement* rank : {&would, &would_not}) {
    rank->state = MeasureState::kOpen;
    rank->provenance = Provenance::kEstimated;
  }
  EXPECT_EQ(Joined(Judge({would, would_not}).remarks).find("recovery"), std::string::npos);
  would.protocol = kInSituProtocol;
  EXPECT_NE(Joined(Judge({would, would_not}).remarks).find("would run in 1 rank themselves"),
            std::string::npos);
  would.provenance = Provenance::kLive;  // it did
  EXPECT_EQ(Joined(Judge({would, would_not}).remarks).find("recovery mode: if"), std::string::npos);
}

TEST(TotalInjection, SaysHowManyPausesCannotBeKnownToOverlap) {
  JobPauses pauses;
  pauses.Add("a", 0, 80);
  pauses.AddLost(3);
  EXPECT_EQ(TotalInjection({}, pauses, 80, 0).pauses_lost, 3u);
}

}  // namespace
}  // namespace perfd
