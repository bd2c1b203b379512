#include "core/analysis/verdict.h"

#include <gtest/gtest.h>

#include "tests/unit/core/analysis/some_figures.h"

namespace perfd {
namespace {

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
  EXPECT_EQ(at(0.90, 1.14), Bound::kBalanced);     // 1.14 is all of the time
  EXPECT_EQ(at(0.84, 1.14), Bound::kArithmetic);
  EXPECT_EQ(BoundOf(0.87, 0.87, 0.14, 0.14), Bound::kBalanced) << "unstable: 1 within its noise";
}

TEST(BoundOf, ScatterBeyondItsCapMakesNothingFull) {
  const auto at = [](double ls, double fp, double noise) { return BoundOf(ls, fp, noise, noise); };
  EXPECT_EQ(at(0.851, 0.851, 0.2), Bound::kBalanced) << "within the cap of 0.15";
  EXPECT_EQ(at(0.849, 0.849, 0.2), Bound::kUnknown) << "within its noise, not within the cap";
  EXPECT_EQ(at(0.849, 0.849, 0.15), Bound::kUnsaturated) << "not within its noise";
  EXPECT_EQ(at(0.7, 0.7, 0.29), Bound::kUnsaturated);
  EXPECT_EQ(at(0.7, 0.7, 0.31), Bound::kUnknown);
  EXPECT_EQ(at(0.98, 0.6, 0.5), Bound::kMemory) << "far apart, however much the instances scatter";
  EXPECT_EQ(at(0.2, 0.1, 5), Bound::kUnknown) << "not: balanced, as everything is within 5 of 1";
  EXPECT_EQ(at(0.99, 0.98, 5), Bound::kBalanced);
}

TEST(VerdictOf, IsSureOnlyWhenTheIntervalsAllowNothingElse) {
  EXPECT_TRUE(VerdictOf(Loop({Figures("LS", 0.98), Figures("FP", 0.3)})).sure);
  const BoundVerdict wide = VerdictOf(Loop({Figures("LS", 0.8, 0.2), Figures("FP", 0.6, 0.2)}));
  EXPECT_EQ(wide.bound, Bound::kMemory);
  EXPECT_FALSE(wide.sure);
  EXPECT_EQ(VerdictOf(Loop({Figures("LS", 0.98)})).bound, Bound::kUnknown);
  // Each of the four ends alone can make it doubtful.
  const auto sure = [](Ratio ls, Ratio fp) {
    LoopMeasurement loop = Loop({Figures("LS", 0), Figures("FP", 0)});
    loop.figures[0].saturation = ls;
    loop.figures[1].saturation = fp;
    return VerdictOf(loop).sure;
  };
  EXPECT_TRUE(sure({0.7, 0.7, 0.7}, {0.6, 0.6, 0.6}));
  EXPECT_FALSE(sure({0.7, 0.7, 0.96}, {0.6, 0.6, 0.6}));
  EXPECT_FALSE(sure({0.7, 0.4, 0.7}, {0.6, 0.6, 0.6}));
  EXPECT_FALSE(sure({0.7, 0.7, 0.7}, {0.6, 0.6, 0.96}));
  EXPECT_FALSE(sure({0.7, 0.7, 0.7}, {0.6, 0.4, 0.6}));
}

TEST(VerdictOf, WhatTheIntervalsLeaveOpenIsTooNoisyBeyondTheirReach) {
  const auto verdict = [](double half) {
    return VerdictOf(Loop({Figures("LS", 0.8, 0.01), Figures("FP", 0.7, half)}));
  };
  EXPECT_EQ(verdict(0.299).bound, Bound::kUnsaturated);
  EXPECT_FALSE(verdict(0.299).sure);
  EXPECT_EQ(verdict(0.301).bound, Bound::kUnknown);
  EXPECT_EQ(verdict(0.301).why, Silence::kTooNoisy);
  // Whatever FP is in a wide interval, LS is far above it.
  const BoundVerdict sure = VerdictOf(Loop({Figures("LS", 1.0, 0.01), Figures("FP", 0.35, 0.34)}));
  EXPECT_EQ(sure.bound, Bound::kMemory);
  EXPECT_TRUE(sure.sure);
}

TEST(VerdictOf, ScatterOfTheInstancesIsTooNoisyToo) {
  LoopMeasurement loop = Loop({Figures("LS", 0.8), Figures("FP", 0.8)});
  loop.figures[0].stability = 0.09;
  EXPECT_EQ(VerdictOf(loop).bound, Bound::kUnsaturated);
  EXPECT_EQ(VerdictOf(loop).why, Silence::kNone);
  loop.figures[0].stability = 0.11;
  EXPECT_EQ(VerdictOf(loop).bound, Bound::kUnknown);
  EXPECT_EQ(VerdictOf(loop).why, Silence::kTooNoisy);
  EXPECT_NE(Joined(RemarksOf(loop))
                .find("too noisy for a verdict: LS 0.80 [0.79, 0.81] and FP 0.80 "
                      "[0.79, 0.81]; times scatter by 11 %"),
            std::string::npos);
}

TEST(VerdictOf, TheControlAloneIsOverhead) {
  const auto bound = [](double ctrl) {
    return VerdictOf(Loop({Figures("LS", 0.99), Figures("FP", 0.98), Figures("CTRL", ctrl)})).bound;
  };
  EXPECT_EQ(bound(0.96), Bound::kOverhead);
  EXPECT_EQ(bound(0.94), Bound::kBalanced);
  EXPECT_TRUE(
      VerdictOf(Loop({Figures("LS", 0.99), Figures("FP", 0.98), Figures("CTRL", 0.97)})).sure);
  EXPECT_FALSE(
      VerdictOf(Loop({Figures("LS", 0.99), Figures("FP", 0.98), Figures("CTRL", 0.96, 0.02)}))
          .sure);
  EXPECT_EQ(VerdictOf(Loop({Figures("LS", 0.99), Figures("FP", 0.3), Figures("CTRL", 0.4)})).bound,
            Bound::kMemory);
  EXPECT_EQ(VerdictOf(Loop({Figures("LS", 0.99), Figures("FP", 0.3), Figures("CTRL", 0.96)})).why,
            Silence::kContradictory)
      << "FP holds the control";
}

TEST(VerdictOf, WithoutFpDl1StillToldWhereTheDataAre) {
  const auto verdict = [](double ls, double dl1, double half = 0.01) {
    return VerdictOf(Loop({Figures("LS", ls), Void("FP"), Figures("DL1", dl1, half)}));
  };
  EXPECT_EQ(verdict(0.98, 0.99).bound, Bound::kWithinL1);
  EXPECT_TRUE(verdict(0.98, 0.99).sure);
  EXPECT_FALSE(verdict(0.98, 0.96, 0.02).sure) << "the interval leaves the 5 % around 1";
  EXPECT_EQ(verdict(0.6, 0.99).bound, Bound::kWithinL1);
  EXPECT_EQ(verdict(0.98, 0.94).bound, Bound::kUnknown) << "data are beyond L1";
  EXPECT_EQ(verdict(0.98, 0.94).why, Silence::kFpDidNotCount);
  EXPECT_EQ(VerdictOf(Loop({Void("LS"), Figures("FP", 0.9), Figures("DL1", 1)})).bound,
            Bound::kWithinL1);
  EXPECT_EQ(VerdictOf(Loop({Void("LS"), Void("FP"), Figures("DL1", 1)})).bound, Bound::kUnknown);
  EXPECT_EQ(VerdictOf(Loop({Void("LS"), Void("FP"), Figures("DL1", 1)})).why,
            Silence::kLsDidNotCount);
}

TEST(VerdictOf, TheWeakerStatementIsNotMadeTooEarly) {
  EXPECT_EQ(VerdictOf(Loop({Figures("LS", 0.98), Figures("DL1", 1)})).bound, Bound::kUnknown)
      << "FP was not tried yet";
  EXPECT_EQ(VerdictOf(Loop({Figures("LS", 0.98), Figures("DL1", 1)})).why, Silence::kNone);
  LoopMeasurement refused = Loop({Figures("LS", 0.98), Figures("DL1", 1)});
  refused.refusals = {{"FP", 0x10, "a gather", 1}};
  EXPECT_EQ(VerdictOf(refused).bound, Bound::kWithinL1);
  refused.figures[1].edits.accesses = 2;
  refused.figures[1].edits.pinned = 1;
  EXPECT_EQ(VerdictOf(refused).bound, Bound::kUnknown) << "DL1 left an access where it was";
}

TEST(RemarksOf, TheWeakerStatementSaysWhatItRestsOn) {
  const auto remark = [](double ls) {
    return Joined(RemarksOf(Loop({Figures("LS", ls), Void("FP"), Figures("DL1", 1)})));
  };
  EXPECT_EQ(
      remark(0.98),
      "memory beyond L1 is not the limit (DL1 1.00 [0.99, 1.01]), and arithmetic alone is not "
      "the limit either: accesses that hit L1, the control or the front end take all of the time "
      "(LS 0.98 [0.97, 0.99]); more cannot be said, as FP did not count");
  EXPECT_NE(remark(0.7).find("and arithmetic takes part (LS 0.70"), std::string::npos);
  EXPECT_NE(Joined(RemarksOf(Loop({Void("LS"), Figures("FP", 0.99), Figures("DL1", 1)})))
                .find("the accesses alone are not the limit either (FP 0.99 [0.98, 1.00]); more "
                      "cannot be said, as LS did not count"),
            std::string::npos);
  EXPECT_EQ(
      Joined(RemarksOf(Loop({Figures("LS", 1), Figures("FP", 0.5), Figures("DL1", 1)}))),
      "accesses that hit L1 are the limit (LS 1.00 [0.99, 1.01], FP 0.50 [0.49, 0.51]), memory "
      "beyond L1 is not (DL1 1.00 [0.99, 1.01])");
}

// FP of a chase: every access stays.
VariantFigures Unchanged(const char* variant, double saturation) {
  VariantFigures figures = Figures(variant, saturation);
  figures.edits.accesses = 2;
  figures.edits.changed = 0;
  return figures;
}

TEST(VerdictOf, WhereFpIsTheLoopItselfDl1Decides) {
  const auto of = [](double ls, double dl1, double half = 0.01) {
    return VerdictOf(Loop({Figures("LS", ls), Unchanged("FP", 1), Figures("DL1", dl1, half)}));
  };
  EXPECT_EQ(of(1, 0.03).bound, Bound::kMemory);
  EXPECT_TRUE(of(1, 0.03).sure);
  EXPECT_FALSE(of(1, 0.9, 0.2).sure);
  EXPECT_EQ(of(1, 1).bound, Bound::kWithinL1);
  EXPECT_TRUE(of(1, 0.99).sure);
  EXPECT_FALSE(of(1, 0.96, 0.03).sure) << "the interval leaves the 5 % around 1";
  VariantFigures noisy = Figures("DL1", 0.8);
  noisy.stability = 0.15;  // 1 within its noise, not within the cap on noise
  EXPECT_EQ(VerdictOf(Loop({Figures("LS", 1), Unchanged("FP", 1), noisy})).bound, Bound::kUnknown);
  noisy.saturation = {0.6, 0.59, 0.61};
  EXPECT_EQ(VerdictOf(Loop({Figures("LS", 1), Unchanged("FP", 1), noisy})).bound, Bound::kMemory);
  EXPECT_EQ(of(0.4, 0.03).bound, Bound::kArithmetic) << "LS found what takes the time";
  VariantFigures partly = Figures("DL1", 1);
  partly.edits.pinned = 1, partly.edits.accesses = 2;
  const BoundVerdict open = VerdictOf(Loop({Figures("LS", 1), Unchanged("FP", 1), partly}));
  EXPECT_EQ(open.bound, Bound::kUnknown);
  EXPECT_EQ(open.why, Silence::kTakesNothingAway);
  const auto with = [&](double ctrl) {
    return VerdictOf(Loop({Figures("LS", 1), Unchanged("FP", 1), partly, Figures("CTRL", ctrl)}));
  };
  EXPECT_EQ(with(1).bound, Bound::kOverhead);
  EXPECT_TRUE(with(1).sure);
  EXPECT_EQ(with(0.5).bound, Bound::kUnknown);
  VariantFigures changed = Unchanged("FP", 1);
  changed.edits.changed = 1;
  EXPECT_EQ(VerdictOf(Loop({Figures("LS", 1), changed, Figures("DL1", 0.03)})).bound,
            Bound::kBalanced);
}

// y[row[i]] += ...: pinned, or without the accesses, passes do not wait for each other any more.
TEST(VerdictOf, WhatCutsAChainThroughMemoryNamesNothing) {
  VariantFigures fp = Figures("FP", 0.5);
  VariantFigures dl1 = Figures("DL1", 0.56);
  fp.edits.changed = dl1.edits.pinned = dl1.edits.accesses = 3;
  const LoopMeasurement memory = Loop({Figures("LS", 1), fp, dl1});
  EXPECT_EQ(VerdictOf(memory).bound, Bound::kMemory);
  EXPECT_NE(LevelOf(memory), DataLevel::kUnknown);
  EXPECT_FALSE(GainsOf(memory, {1, 1, 1}).empty());
  for (VariantFigures* figures : {&fp, &dl1}) {
    figures->edits.cuts_memory_chain = true;
    const LoopMeasurement loop = Loop({Figures("LS", 1), fp, dl1});
    EXPECT_EQ(VerdictOf(loop).bound, Bound::kUnknown);
    EXPECT_EQ(VerdictOf(loop).why, Silence::kMemoryChain);
  }
  const LoopMeasurement cut = Loop({Figures("LS", 1), fp, dl1});
  EXPECT_EQ(LevelOf(cut), DataLevel::kUnknown);
  EXPECT_TRUE(GainsOf(cut, {1, 1, 1}).empty());
  // Who gains nothing by cutting it has not waited for it.
  VariantFigures full = Figures("FP", 1);
  full.edits = fp.edits;
  VariantFigures ls = Figures("LS", 0.3);
  EXPECT_EQ(VerdictOf(Loop({Figures("LS", 0.3), full})).bound, Bound::kArithmetic);
  ls.edits.cuts_memory_chain = true;
  EXPECT_EQ(VerdictOf(Loop({ls, full})).why, Silence::kMemoryChain);
}

TEST(LevelOf, WhatFitsAnySecondLevelIsNotBeyondIt) {
  VariantFigures dl1 = Figures("DL1", 0.19);
  dl1.edits.pinned = dl1.edits.accesses = 1;
  LoopMeasurement loop = Loop({Figures("LS", 1), Figures("FP", 0.2), dl1});
  loop.fidelity.caches = CachesBefore::kWarm;
  loop.references = {{.instruction = 1, .reads = true, .lowest = 0x1000, .highest = 0xa080}};
  EXPECT_EQ(LevelOf(loop), DataLevel::kUnknown);
  loop.references[0].highest += 64 << 20;
  EXPECT_EQ(LevelOf(loop), DataLevel::kBeyondL2);
}

TEST(RemarksOf, WhereFpIsTheLoopItselfTheySaySo) {
  const std::string memory =
      Joined(RemarksOf(Loop({Figures("LS", 1), Unchanged("FP", 1), Figures("DL1", 0.03)})));
  EXPECT_NE(memory.find("that memory is the limit rests on DL1 0.03"), std::string::npos) << memory;
  const std::string within =
      Joined(RemarksOf(Loop({Figures("LS", 1), Unchanged("FP", 1), Figures("DL1", 1)})));
  EXPECT_NE(within.find("FP takes no access away"), std::string::npos) << within;
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
  partly.edits.accesses = 4;
  partly.edits.pinned = 3;
  EXPECT_EQ(LevelOf(Loop({partly})), DataLevel::kUnknown);
}

TEST(LevelOf, ScatterBeyondItsCapIsNoLevel) {
  VariantFigures dl1 = Figures("DL1", 0.849);
  dl1.stability = 0.1;
  EXPECT_EQ(LevelOf(Loop({dl1})), DataLevel::kUnknown)
      << "1 within its scatter, but not within 15 %";
  dl1.saturation.value = 0.851;
  EXPECT_EQ(LevelOf(Loop({dl1})), DataLevel::kL1);
  dl1.saturation.value = 0.79;
  EXPECT_EQ(LevelOf(Loop({dl1})), DataLevel::kL2);
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

TEST(GainsOf, OnlyOfTheTeamAndOfWhatCounts) {
  VariantFigures never = Figures("NO_DIV", 0.5);
  never.valid_runs = 0;
  const auto gains = GainsOf(
      Loop({Figures("DL1", 0.98, 0.05), Figures("DL1", 0.1, 0.01, 1), never}), {0.5, 0.5, 0.5});
  ASSERT_EQ(gains.size(), 1u);
  EXPECT_NEAR(gains[0].of_job.value, 0.01, 1e-12);
  EXPECT_EQ(gains[0].of_job.low, 0);  // a saturation of 1.03 is no loss
}

// What is said of the program rests on a shadow that ran as the program does.
TEST(VerdictOf, NothingIsNamedOfAShadowAtAnotherSpeed) {
  LoopMeasurement loop = Loop({Figures("LS", 0.98), Figures("FP", 0.3), Figures("DL1", 0.4)});
  const auto at = [&](double fidelity) {
    loop.fidelity = {fidelity, fidelity, fidelity};
    return VerdictOf(loop);
  };
  for (const double fidelity : {0.0, 0.8, 1.0, 1.25}) {  // 0: not measured
    EXPECT_EQ(at(fidelity).bound, Bound::kMemory) << fidelity;
    EXPECT_EQ(LevelOf(loop), DataLevel::kBeyondL2) << fidelity;
  }
  for (const double fidelity : {0.49, 0.79, 1.26, 2.1}) {
    EXPECT_EQ(at(fidelity).bound, Bound::kUnknown) << fidelity;
    EXPECT_EQ(at(fidelity).why, Silence::kFidelity);
    EXPECT_EQ(LevelOf(loop), DataLevel::kUnknown);
    EXPECT_EQ(GainsOf(loop, {1, 1, 1}).empty(), fidelity < 0.5 || fidelity > 2) << fidelity;
  }
}

TEST(VerdictOf, TwoRunsAreNoInterval) {
  for (size_t few = 0; few < 3; ++few) {
    LoopMeasurement loop = Loop({Figures("LS", 0.98), Figures("FP", 0.3), Figures("DL1", 0.4)});
    loop.figures[few].valid_runs = 3;
    EXPECT_EQ(VerdictOf(loop).bound, Bound::kMemory);
    loop.figures[few].valid_runs = 2;
    EXPECT_EQ(VerdictOf(loop).why, Silence::kFewRuns) << few;
    EXPECT_EQ(GainsOf(loop, {1, 1, 1}).size(), few == 2 ? 0u : 1u);
  }
}

// What had to stay may have taken any part of the time that is left.
TEST(VerdictOf, WhatCouldNotBeChangedDecidesNothing) {
  const auto of = [](double ls, int ls_kept, double fp, int fp_kept) {
    LoopMeasurement loop = Loop({Figures("LS", ls), Figures("FP", fp)});
    loop.figures[0].edits.kept = ls_kept;
    loop.figures[1].edits.kept = fp_kept;
    return VerdictOf(loop);
  };
  EXPECT_EQ(of(0.98, 0, 0.3, 2).bound, Bound::kMemory) << "without the rest FP is lower still";
  EXPECT_TRUE(of(0.98, 0, 0.3, 2).sure);
  EXPECT_EQ(of(0.98, 1, 0.3, 0).why, Silence::kPartlyChanged);
  EXPECT_EQ(of(0.3, 1, 0.98, 0).bound, Bound::kArithmetic);
  EXPECT_EQ(of(0.3, 0, 0.98, 1).why, Silence::kPartlyChanged);
  EXPECT_EQ(of(0.98, 0, 0.99, 1).why, Silence::kPartlyChanged);
}

// What stayed in LS stays in FP, which shows how long it takes at most; unless values go round through memory.
TEST(VerdictOf, WhatStayedTakesNoLongerThanWhereTheRestIsGone) {
  const auto of = [](double ls, int ls_kept, double fp, int fp_kept, bool unchained = true) {
    LoopMeasurement loop = Loop({Figures("LS", ls), Figures("FP", fp)});
    loop.figures[0].edits.kept = ls_kept;
    loop.figures[1].edits.kept = fp_kept;
    for (VariantFigures& figures : loop.figures) {
      figures.edits.unchained = unchained;
      figures.edits.changed = 8;
    }
    return VerdictOf(loop);
  };
  EXPECT_EQ(of(1, 3, 0.15, 2).bound, Bound::kMemory);
  EXPECT_FALSE(of(1, 3, 0.15, 2).sure) << "a bound is no measurement";
  EXPECT_EQ(of(1, 6, 0.15, 2).why, Silence::kPartlyChanged) << "much stayed: it narrows the window";
  EXPECT_EQ(of(1, 3, 0.15, 2, false).why, Silence::kPartlyChanged);
  EXPECT_EQ(of(1, 3, 0.45, 0).why, Silence::kPartlyChanged) << "1 - 0.45 is not far above 0.45";
  EXPECT_EQ(of(0.15, 2, 1, 3).bound, Bound::kArithmetic);
  EXPECT_EQ(of(0.15, 2, 1, 3, false).why, Silence::kPartlyChanged);
  EXPECT_EQ(of(1, 1, 1, 0).why, Silence::kPartlyChanged);
  EXPECT_EQ(of(1, 1, 1, 1).why, Silence::kPartlyChanged);
}

TEST(VerdictOf, FiguresThatContradictEachOtherNameNothing) {
  const auto of = [](double ls, double fp, double dl1) {
    return VerdictOf(Loop({Figures("LS", ls), Figures("FP", fp), Figures("DL1", dl1)}));
  };
  EXPECT_EQ(of(0.98, 0.3, 1.32).why, Silence::kContradictory) << "no cache is worse than memory";
  EXPECT_EQ(of(0.98, 0.3, 1.01).bound, Bound::kWithinL1) << "nor is it memory beyond L1 then";
  EXPECT_TRUE(of(0.98, 0.3, 1.01).sure);
  LoopMeasurement wide =
      Loop({Figures("LS", 0.98), Figures("FP", 0.3), Figures("DL1", 0.96, 0.03)});
  EXPECT_EQ(VerdictOf(wide).bound, Bound::kWithinL1);
  EXPECT_FALSE(VerdictOf(wide).sure);
  EXPECT_EQ(of(0.98, 0.3, 0.9).bound, Bound::kMemory);
  EXPECT_EQ(of(1.3, 0.3, 0.4).why, Silence::kContradictory) << "less arithmetic, more time";
  EXPECT_EQ(of(0.3, 1.3, 1).why, Silence::kContradictory);
  // "Overhead" of a control that is the whole loop.
  LoopMeasurement loop = Loop({Figures("LS", 1), Figures("FP", 1), Figures("CTRL", 1)});
  EXPECT_EQ(VerdictOf(loop).bound, Bound::kOverhead);
  loop.figures[2].edits.kept = 1;
  EXPECT_EQ(VerdictOf(loop).why, Silence::kContradictory);
}

// Whoever takes away more cannot be left with far more time.
TEST(VerdictOf, APartOfARemovalSavesNoMoreThanAllOfIt) {
  struct Case {
    const char *all, *part;
  };
  for (const Case& one : {Case{"LS", "NO_DIV"},
                          {"LS", "NO_RED"},
                          {"LS", "NO_DIV+NO_RED"},
                          {"LS", "NO_SQRT"},
                          {"FP", "NO_STORE"},
                          {"CTRL", "LS"},
                          {"CTRL", "FP"}}) {
    SCOPED_TRACE(std::string(one.all) + " " + one.part);
    const auto at = [&](double all, double part) {
      LoopMeasurement loop;
      for (const char* name : {"LS", "FP", "CTRL"}) {
        if (std::string(name) == one.all)
          loop.figures.push_back(Figures(name, all));
        else if (std::string(name) == one.part)
          loop.figures.push_back(Figures(name, part));
        else
          loop.figures.push_back(Figures(name, std::string(name) == "CTRL" ? 0.1 : 0.98));
      }
      if (FindFigures(loop, one.part) == nullptr) loop.figures.push_back(Figures(one.part, part));
      return loop;
    };
    const LoopMeasurement so = at(0.8, 0.4), alike = at(0.8, 0.7);
    EXPECT_EQ(VerdictOf(so).why, Silence::kContradictory);
    EXPECT_TRUE(GainsOf(so, {1, 1, 1}).empty());
    EXPECT_NE(VerdictOf(alike).why, Silence::kContradictory);
    LoopMeasurement kept = so;  // it had to leave some: a part may be more than it
    for (VariantFigures& f : kept.figures) f.edits.kept = f.variant == one.all;
    EXPECT_NE(VerdictOf(kept).why, Silence::kContradictory);
    LoopMeasurement few = so;
    for (VariantFigures& f : few.figures) f.valid_runs = f.variant == one.part ? 2 : 31;
    EXPECT_NE(VerdictOf(few).why, Silence::kContradictory);
  }
}

// Everything is in the first level, and is there before each run: memory beyond it cannot be the limit.
TEST(VerdictOf, NothingWaitsForMemoryThatFitsTheFirstLevel) {
  LoopMeasurement loop = Loop({Figures("LS", 0.98), Figures("FP", 0.3), Figures("DL1", 0.4)});
  loop.figures[2].edits = {1, 0, 1, 1};
  loop.references = {{.instruction = 1, .reads = true, .lowest = 0x10000, .highest = 0x16000}};
  loop.fidelity.caches = CachesBefore::kWarm;
  EXPECT_EQ(VerdictOf(loop).why, Silence::kContradictory);
  EXPECT_EQ(LevelOf(loop), DataLevel::kUnknown);
  EXPECT_TRUE(GainsOf(loop, {1, 1, 1}).empty());
  const auto named = [&](auto change) {
    LoopMeasurement other = loop;
    change(other);
    return VerdictOf(other).bound == Bound::kMemory && LevelOf(other) == DataLevel::kBeyondL2;
  };
  LoopMeasurement more = loop;
  more.references[0].highest += 1;
  EXPECT_EQ(VerdictOf(more).bound, Bound::kMemory)
      << "24 KiB and a byte: it may wait for the second";
  EXPECT_EQ(LevelOf(more), DataLevel::kUnknown) << "and fits that";
  EXPECT_TRUE(named([](auto& l) { l.references[0].highest = 0x10001 + (256 << 10); }));
  EXPECT_TRUE(named([](auto& l) { l.fidelity.caches = CachesBefore::kCold; }));
  EXPECT_TRUE(named([](auto& l) { l.fidelity.caches = CachesBefore::kUnknown; }));
  EXPECT_TRUE(named([](auto& l) { l.instances = 100; })) << "what lies between touches more";
  EXPECT_TRUE(named([](auto& l) { l.figures[2].edits = {2, 0, 2, 2}; })) << "one was not seen";
}

// What such lines cost depends on who comes when, which is not in a shadow as it is in the program.
TEST(VerdictOf, NothingIsNamedWhereThreadsShareLines) {
  LoopMeasurement loop = Loop({Figures("LS", 0.98), Figures("FP", 0.3), Figures("DL1", 0.4),
                               Figures("S2L", 0.2), Figures("NO_DIV", 0.9)});
  loop.team = 2;
  loop.fidelity = {1, 0.99, 1.01};
  loop.references = {{.instruction = 1, .writes = true, .lowest = 64, .highest = 72}};
  EXPECT_EQ(VerdictOf(loop).bound, Bound::kMemory);
  EXPECT_EQ(GainsOf(loop, {1, 1, 1}).size(), 3u);
  EXPECT_NE(Joined(RemarksOf(loop)).find("stores cost"), std::string::npos);
  const auto is_silent = [](const LoopMeasurement& of) {
    return VerdictOf(of).why == Silence::kSharedLines && LevelOf(of) == DataLevel::kUnknown &&
           GainsOf(of, {1, 1, 1}).empty() && RemarksOf(of).empty();
  };
  LoopMeasurement by_trace = loop, by_reason = loop;
  by_trace.references[0].shared = true;
  by_reason.fidelity.reason = FidelityReason::kSharedLines;  // its references were not kept
  EXPECT_TRUE(is_silent(by_trace));
  EXPECT_TRUE(is_silent(by_reason));
  EXPECT_EQ(FindFigures(by_trace, "S2L")->saturation.value, 0.2) << "figures stay";
}

// A prefetcher may bring in time what does not fit.
TEST(LevelOf, IsNotL1WhereMoreWasTouchedThanFits) {
  LoopMeasurement loop = Loop({Figures("DL1", 1)});
  EXPECT_EQ(LevelOf(loop), DataLevel::kL1);
  loop.references = {{.instruction = 1, .reads = true, .lowest = 0x10000, .highest = 0x18000},
                     {.instruction = 2, .reads = true, .lowest = 0x14000, .highest = 0x20000}};
  EXPECT_EQ(LevelOf(loop), DataLevel::kL1) << "64 KiB, counted once";
  loop.references[1].highest += 64;
  EXPECT_EQ(LevelOf(loop), DataLevel::kUnknown);
  loop.figures[0].saturation = {1.2, 1.19, 1.21};
  EXPECT_EQ(LevelOf(loop), DataLevel::kUnknown);
  loop.figures[0].saturation = {0.7, 0.69, 0.71};
  EXPECT_EQ(LevelOf(loop), DataLevel::kL2);
  loop.references[1].highest += 5 << 20;
  EXPECT_EQ(LevelOf(loop), DataLevel::kBeyondL2);
}

// What a variant that changes nothing shows is noise.
TEST(GainsOf, AndRemarksAreNotMadeOfTheLoopItself) {
  LoopMeasurement loop =
      Loop({Figures("S2L", 0.86), Figures("NO_STORE", 0.98), Figures("DL1", 0.9)});
  ASSERT_EQ(GainsOf(loop, {1, 1, 1}).size(), 3u);
  ASSERT_EQ(RemarksOf(loop).size(), 1u);
  for (VariantFigures& figures : loop.figures) figures.edits.changed = 0;
  EXPECT_TRUE(GainsOf(loop, {1, 1, 1}).empty());
  EXPECT_TRUE(RemarksOf(loop).empty());
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

TEST(RemarksOf, TellPartialPinning) {
  VariantFigures dl1 = Figures("DL1", 0.9);
  dl1.edits.accesses = 3;
  dl1.edits.pinned = 2;
  EXPECT_NE(Joined(RemarksOf(Loop({dl1}))).find("pinned 2 of 3"), std::string::npos);
}

TEST(RemarksOf, StoresAreSaidToCostOnlyWhenSure) {
  EXPECT_EQ(Joined(RemarksOf(Loop({Figures("S2L", 0.9, 0.11)}))), "");
  EXPECT_NE(Joined(RemarksOf(Loop({Figures("S2L", 0.9, 0.09)}))), "");
  EXPECT_EQ(RemarksOf(Loop({Figures("S2L", 0.4), Figures("NO_STORE", 0.3)})).size(), 1u);
  EXPECT_EQ(RemarksOf(Loop({Figures("NO_STORE", 0.3)})).size(), 1u);
}

TEST(RemarksOf, InteractionNeedsIntervalsThatAreApart) {
  const auto text = [](double half) {
    return Joined(
        RemarksOf(Loop({Figures("NO_DIV", 0.5, half), Figures("NO_DIV+NO_RED", 0.4, half)})));
  };
  EXPECT_NE(text(0.06).find("do not interact"), std::string::npos);
  EXPECT_NE(text(0.04).find("reductions cost once"), std::string::npos);
}

}  // namespace
}  // namespace perfd
