#include "core/analysis/verdict.h"

#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "core/analysis/injection_total.h"
#include "core/analysis/job_verdict.h"

namespace perfd {
namespace {

VariantFigures Figures(const char* variant, double value, double half = 0.01,
                       int32_t thread = kTeam) {
  VariantFigures f;
  f.variant = variant;
  f.base = "REF";
  f.thread = thread;
  f.saturation = {value, value - half, value + half};
  f.valid_runs = 31;
  f.shadows = 5;
  return f;
}

LoopMeasurement Loop(std::vector<VariantFigures> figures, int32_t rank = 0) {
  LoopMeasurement loop;
  loop.node = "n1";
  loop.rank = rank;
  loop.pid = 100 + rank;
  loop.loop_id = "abc";
  loop.state = MeasureState::kMeasured;
  loop.figures = std::move(figures);
  return loop;
}

std::string Joined(const std::vector<std::string>& names) {
  return absl::StrJoin(names, " ");
}

TEST(BoundOf, FollowsTheFourRowsOfTheTable) {
  const auto at = [](double ls, double fp) { return BoundOf(ls, fp, 0.05, 0.05); };
  EXPECT_EQ(at(1.0, 1.0), Bound::kBalanced);
  EXPECT_EQ(at(0.99, 0.2), Bound::kMemory);
  EXPECT_EQ(at(0.2, 0.99), Bound::kArithmetic);
  EXPECT_EQ(at(0.6, 0.55), Bound::kUnsaturated);
}

TEST(BoundOf, EdgesAreWhereTheySay) {
  const auto at = [](double ls, double fp) { return BoundOf(ls, fp, 0.05, 0.05); };
  EXPECT_EQ(at(0.95, 0.95), Bound::kBalanced);  // within 5 %
  EXPECT_EQ(at(0.94, 0.94), Bound::kUnsaturated);
  EXPECT_EQ(at(0.90, 0.74), Bound::kMemory);       // difference over 0.15
  EXPECT_EQ(at(0.90, 0.76), Bound::kUnsaturated);  // 0.14, ratio 1.18
  EXPECT_EQ(at(0.52, 0.40), Bound::kMemory);       // ratio 1.3 from 0.5 on
  EXPECT_EQ(at(0.06, 0.04), Bound::kUnsaturated);  // ratio 1.5 of next to nothing
  EXPECT_EQ(at(0.98, 0.92), Bound::kBalanced);     // one full, the other near
  EXPECT_EQ(BoundOf(0.85, 0.85, 0.2, 0.2), Bound::kBalanced) << "unstable: 1 within its noise";
}

TEST(VerdictOf, IsSureOnlyWhenTheIntervalsAllowNothingElse) {
  EXPECT_TRUE(VerdictOf(Loop({Figures("LS", 0.98), Figures("FP", 0.3)})).sure);
  const BoundVerdict wide = VerdictOf(Loop({Figures("LS", 0.8, 0.2), Figures("FP", 0.6, 0.2)}));
  EXPECT_EQ(wide.bound, Bound::kMemory);
  EXPECT_FALSE(wide.sure);
  EXPECT_EQ(VerdictOf(Loop({Figures("LS", 0.98)})).bound, Bound::kUnknown);
}

TEST(VerdictOf, IgnoresFiguresWithoutValidRuns) {
  VariantFigures fp = Figures("FP", 0.3);
  fp.valid_runs = 0;
  EXPECT_EQ(VerdictOf(Loop({Figures("LS", 0.98), fp})).bound, Bound::kUnknown);
}

TEST(LevelOf, NeedsEveryAccessPinned) {
  EXPECT_EQ(LevelOf(Loop({Figures("DL1", 0.97)})), DataLevel::kL1);
  EXPECT_EQ(LevelOf(Loop({Figures("DL1", 0.51)})), DataLevel::kL2);
  EXPECT_EQ(LevelOf(Loop({Figures("DL1", 0.50)})), DataLevel::kBeyondL2);
  EXPECT_EQ(LevelOf(Loop({})), DataLevel::kUnknown);
  VariantFigures partly = Figures("DL1", 0.97);
  partly.accesses = 4;
  partly.pinned = 3;
  EXPECT_EQ(LevelOf(Loop({partly})), DataLevel::kUnknown);
}

TEST(GainsOf, ReproducesTheWorkedExamplesOfTheThesis) {
  // 30 % x 90 % = 27 % before 50 % x 30 % = 15 %; 40 % x 10 % = 4 % after 20 % x 60 % = 12 %.
  const auto gain = [](double share, double saturation) {
    return GainsOf(Loop({Figures("DL1", saturation, 0)}), {share, share, share})[0].of_job.value;
  };
  EXPECT_NEAR(gain(0.3, 0.1), 0.27, 1e-12);
  EXPECT_NEAR(gain(0.5, 0.7), 0.15, 1e-12);
  EXPECT_NEAR(gain(0.4, 0.9), 0.04, 1e-12);
  EXPECT_NEAR(gain(0.2, 0.4), 0.12, 1e-12);
}

TEST(GainsOf, AreFixesInOrderWithIntervals) {
  const auto gains = GainsOf(Loop({Figures("LS", 0.2), Figures("DL1", 0.6, 0.1),
                                   Figures("NO_DIV", 0.5), Figures("S2L", 1.1)}),
                             {0.5, 0.4, 0.6});
  ASSERT_EQ(gains.size(), 2u);  // LS is no fix, S2L no gain
  EXPECT_EQ(gains[0].name, "no division");
  EXPECT_EQ(gains[1].name, "perfect cache");
  EXPECT_NEAR(gains[1].of_job.value, 0.2, 1e-12);
  EXPECT_NEAR(gains[1].of_job.low, 0.4 * 0.3, 1e-12);
  EXPECT_NEAR(gains[1].of_job.high, 0.6 * 0.5, 1e-12);
}

TEST(FixName, JoinsCombinations) {
  EXPECT_EQ(FixName("NO_DIV+NO_RED"), "no division and no accumulation chain");
  EXPECT_EQ(FixName("GROUP(3)"), "free array group 3");
  for (const char* none : {"LS", "FP", "CTRL", "REF", "PREFETCH(50)", "bad"})
    EXPECT_EQ(FixName(none), "") << none;
}

TEST(RemarksOf, PricesStoresAndInteractions) {
  LoopMeasurement loop =
      Loop({Figures("S2L", 0.4), Figures("NO_DIV", 0.5), Figures("NO_DIV+NO_RED", 0.5)});
  loop.team = 2;
  std::string text = Joined(RemarksOf(loop));
  EXPECT_NE(text.find("stores cost: S2L 0.40 [0.39, 0.41]; with several threads"),
            std::string::npos);
  EXPECT_NE(text.find("do not interact"), std::string::npos);
  loop.figures[2] = Figures("NO_DIV+NO_RED", 0.2);
  loop.figures[0] = Figures("S2L", 0.96);
  text = Joined(RemarksOf(loop));
  EXPECT_NE(text.find("reductions cost once divisions are gone"), std::string::npos);
  EXPECT_NE(text.find("coherence costs little"), std::string::npos);
}

TEST(RemarksOf, DoubtsFidelityAndPartialPinning) {
  VariantFigures dl1 = Figures("DL1", 0.9);
  dl1.accesses = 3;
  dl1.pinned = 2;
  LoopMeasurement loop = Loop({dl1});
  loop.fidelity = {1.11, 1.1, 1.12};
  const std::string text = Joined(RemarksOf(loop));
  EXPECT_NE(text.find("pinned 2 of 3"), std::string::npos);
  EXPECT_NE(text.find("1.11 of its live time"), std::string::npos);
  loop.fidelity = {1.09, 1.08, 1.1};
  EXPECT_EQ(Joined(RemarksOf(loop)).find("live time"), std::string::npos);
}

const StagePlan kAll{
    .asked = {"LS", "FP", "DL1", "NO_DIV", "NO_SQRT", "NO_RED", "S2L", "NO_STORE", "CTRL"},
    .groups = 3};

TEST(NextStage, AsksForTheVerdictFirst) {
  EXPECT_EQ(Joined(NextStage(Loop({}), kAll)), "LS FP DL1");
  EXPECT_EQ(Joined(NextStage(Loop({Figures("LS", 0.9)}), kAll)), "FP DL1");
}

TEST(NextStage, FollowsTheVerdict) {
  const auto after = [](double ls, double fp) {
    return Joined(
        NextStage(Loop({Figures("LS", ls), Figures("FP", fp), Figures("DL1", 0.5)}), kAll));
  };
  EXPECT_EQ(after(0.98, 0.2), "S2L NO_STORE GROUP(0) GROUP(1) GROUP(2)");
  EXPECT_EQ(after(0.2, 0.98), "NO_DIV NO_SQRT NO_RED NO_DIV+NO_RED");
  EXPECT_EQ(after(0.6, 0.6),
            "NO_DIV NO_SQRT NO_RED S2L NO_STORE NO_DIV+NO_RED GROUP(0) GROUP(1) GROUP(2)");
}

TEST(NextStage, EndsWithTheRestAndSkipsTheRefused) {
  LoopMeasurement loop =
      Loop({Figures("LS", 0.2), Figures("FP", 0.98), Figures("DL1", 0.9), Figures("NO_DIV", 0.5),
            Figures("NO_RED", 1), Figures("NO_DIV+NO_RED", 0.5)});
  loop.refusals.push_back({"NO_SQRT", 0x10, "no square root in the loop", 1});
  EXPECT_EQ(Joined(NextStage(loop, kAll)), "S2L NO_STORE CTRL");
  loop.state = MeasureState::kRefused;
  EXPECT_EQ(Joined(NextStage(loop, kAll)), "");
}

TEST(NextStage, RepeatsWhatIsNotYetTightButNotWhatNeverCounts) {
  VariantFigures loose = Figures("LS", 0.9, 0.2);
  loose.valid_runs = 30;
  LoopMeasurement loop = Loop({loose, Figures("FP", 0.2), Figures("DL1", 0.9)});
  EXPECT_EQ(Joined(NextStage(loop, kAll)), "LS");
  loop.figures[0].valid_runs = 0;
  loop.figures[0].invalid_runs = 4;
  loop.refusals.push_back({"LS", 0, "the variant faulted in the shadow", 4});
  EXPECT_EQ(Joined(NextStage(loop, kAll)).find("LS"), std::string::npos);
}

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
  EXPECT_EQ(loop.variants[0].ranks, 10u);
}

TEST(JudgeLoop, SaysWhenThreadsDiffer) {
  LoopMeasurement loop = Memory(0);
  loop.figures.push_back(Figures("LS", 0.2, 0.01, 1));
  loop.figures.push_back(Figures("FP", 0.98, 0.01, 1));
  EXPECT_NE(Joined(Judge({loop}).remarks).find("in 1 rank some threads"), std::string::npos);
  EXPECT_EQ(Joined(Judge({Memory(0)}).remarks).find("threads"), std::string::npos);
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
  LoopMeasurement b = Loop({}, 1);
  b.cost.stop_ns = 50;
  b.cost.later_fault_ns = 5;
  b.cost.pass_through_ns = 4;
  PauseSet pauses;
  pauses.Add(0, 80);  // 120 ns of pauses, 40 of them at the same time
  const std::vector<const LoopMeasurement*> loops = {&a, &b};
  const InjectionTotal total = TotalInjection(loops, pauses, 120, 1000);
  EXPECT_EQ(total.added_wall_ns, 80 + 30 + 9);
  EXPECT_DOUBLE_EQ(total.added_ratio, 0.119);
  EXPECT_EQ(TotalInjection(loops, pauses, 150, 0).added_wall_ns, 80 + 9);
}

}  // namespace
}  // namespace perfd
