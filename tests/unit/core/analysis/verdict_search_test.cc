// Random tables of figures: whatever has a name has what the written rules ask of it (docs/adr/0008-verdict-edges.md). The rules
// are written down here once more, as conditions on the figures, not as a way to the name.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "core/analysis/verdict.h"
#include "tests/unit/core/analysis/some_figures.h"

namespace perfd {
namespace {

constexpr int kTables = 10'000;

class Tables {
 public:
  LoopMeasurement Next() {
    LoopMeasurement loop;
    loop.fidelity.value = Coin(0.2) ? 0 : Between(0.4, 2.2);
    if (Coin(0.5)) loop.fidelity.caches = CachesBefore::kWarm;
    for (const char* variant : {"LS", "FP", "DL1", "CTRL", "S2L", "NO_STORE", "NO_DIV"}) {
      if (Coin(0.15)) continue;
      VariantFigures f = Figures(variant, Coin(0.4) ? Between(0.93, 1.07) : Between(0.02, 1.4),
                                 Coin(0.7) ? Between(0, 0.03) : Between(0, 0.5));
      f.saturation.low = std::max(0.0, f.saturation.low);
      f.stability = Coin(0.7) ? Between(0, 0.03) : Between(0, 0.4);
      f.valid_runs = Coin(0.8) ? 31 : static_cast<uint32_t>(Below(5));
      f.invalid_runs = 1;
      f.edits = {Below(4), Coin(0.6) ? 0 : Below(4), 0, Below(5), Coin(0.5)};
      f.edits.cuts_memory_chain = Coin(0.1);
      if (f.variant == "DL1") f.edits.pinned = Coin(0.7) ? f.edits.accesses : Below(3);
      loop.figures.push_back(f);
    }
    if (Coin(0.5)) {
      const uint64_t bytes = uint64_t{1} << (10 + Below(14));
      loop.references = {{.instruction = 1,
                          .reads = true,
                          .lowest = 4096,
                          .highest = 4096 + bytes,
                          .shared = Coin(0.1)}};
    }
    return loop;
  }

 private:
  bool Coin(double chance) { return Between(0, 1) < chance; }
  double Between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  int32_t Below(int32_t limit) { return std::uniform_int_distribution(0, limit - 1)(random_); }

  std::mt19937 random_{1};
};

// It has runs enough, is all of its class, and takes all of the time but for 15 % of scatter.
bool IsWholeAndFull(const VariantFigures* f) {
  return f != nullptr && f->valid_runs >= 3 && f->saturation.value >= 0.85;
}

bool FarAbove(double a, double b) {
  return std::min(a, 1.0) - b > 0.15 || (std::min(a, 1.0) >= 0.5 && std::min(a, 1.0) > 1.25 * b);
}

// What stayed in it takes at most what the other one does, if nothing goes round through memory.
bool IsFarAboveWithoutTheRest(const VariantFigures& high, const VariantFigures& low) {
  if (high.edits.kept == 0) return true;
  const double least = high.saturation.low - 1.1 * low.saturation.high;
  const bool little = 2 * high.edits.kept <= low.edits.changed + low.edits.kept;
  return little && high.edits.unchained && low.edits.unchained &&
         FarAbove(least, low.saturation.high);
}

bool HasShared(const LoopMeasurement& loop) {
  return !loop.references.empty() && loop.references[0].shared;
}

// All 24 KiB of it were there.
bool IsWarmAndSmall(const LoopMeasurement& loop, const VariantFigures& dl1) {
  return loop.fidelity.caches == CachesBefore::kWarm && loop.references.size() == 1 &&
         dl1.edits.accesses == 1 &&
         loop.references[0].highest - loop.references[0].lowest <= 24u << 10;
}

// Without all arithmetic it takes not far more than without its divisions, and so on.
void CheckParts(const LoopMeasurement& loop) {
  const std::pair<const char*, const char*> pairs[] = {{"LS", "NO_DIV"},   {"FP", "NO_STORE"},
                                                       {"CTRL", "LS"},     {"CTRL", "FP"},
                                                       {"CTRL", "NO_DIV"}, {"CTRL", "NO_STORE"}};
  for (const auto& [all, part] : pairs) {
    const VariantFigures* const a = FindFigures(loop, all);
    const VariantFigures* const p = FindFigures(loop, part);
    if (a == nullptr || p == nullptr || a->edits.kept > 0) continue;
    if (a->valid_runs < 3 || p->valid_runs < 3) continue;
    EXPECT_LE(a->saturation.low, p->saturation.high + 0.15) << all << " " << part;
  }
}

void CheckName(const LoopMeasurement& loop, const BoundVerdict& verdict) {
  const VariantFigures* const ls = FindFigures(loop, "LS");
  const VariantFigures* const fp = FindFigures(loop, "FP");
  const VariantFigures* const dl1 = FindFigures(loop, "DL1");
  const VariantFigures* const ctrl = FindFigures(loop, "CTRL");
  const double fidelity = loop.fidelity.value;
  EXPECT_TRUE(fidelity == 0 || (fidelity >= 0.8 && fidelity <= 1.25)) << fidelity;
  EXPECT_FALSE(HasShared(loop));
  CheckParts(loop);
  for (const VariantFigures* f : {ls, fp, dl1}) {
    if (f == nullptr) continue;
    EXPECT_GE(f->valid_runs, 3u);
    EXPECT_LE(f->saturation.low, 1.15) << f->variant;
    EXPECT_TRUE(!f->edits.cuts_memory_chain || f->saturation.value >= 0.85) << f->variant;
  }
  const bool pinned = dl1 != nullptr && dl1->edits.pinned >= dl1->edits.accesses;
  const bool fp_is_the_loop = fp != nullptr && fp->edits.accesses > 0 && fp->edits.changed == 0;
  switch (verdict.bound) {
    case Bound::kUnknown:
      break;
    case Bound::kMemory:
      ASSERT_TRUE(ls != nullptr && fp != nullptr);
      EXPECT_FALSE(pinned && dl1->saturation.value >= 1) << "a perfect cache is no faster";
      EXPECT_FALSE(pinned && IsWarmAndSmall(loop, *dl1));
      if (fp_is_the_loop) break;  // then LS and DL1 decide
      EXPECT_TRUE(FarAbove(ls->saturation.value, fp->saturation.value));
      EXPECT_TRUE(IsFarAboveWithoutTheRest(*ls, *fp))
          << "free of the rest, LS could be as low as FP";
      break;
    case Bound::kArithmetic:
      ASSERT_TRUE(ls != nullptr && fp != nullptr);
      EXPECT_TRUE(FarAbove(fp->saturation.value, ls->saturation.value));
      if (!fp_is_the_loop) {
        EXPECT_TRUE(IsFarAboveWithoutTheRest(*fp, *ls));
      }
      break;
    case Bound::kBalanced:
      EXPECT_TRUE(IsWholeAndFull(ls) || IsWholeAndFull(fp));
      if (!fp_is_the_loop) {
        EXPECT_EQ(ls->edits.kept + fp->edits.kept, 0);
      }
      break;
    case Bound::kUnsaturated:
      ASSERT_TRUE(ls != nullptr && fp != nullptr);
      EXPECT_FALSE(FarAbove(ls->saturation.value, fp->saturation.value));
      EXPECT_FALSE(FarAbove(fp->saturation.value, ls->saturation.value));
      break;
    case Bound::kOverhead:
      ASSERT_TRUE(IsWholeAndFull(ctrl) || ctrl->saturation.value >= 0.85);
      EXPECT_GT(ctrl->edits.changed, ctrl->edits.kept) << "a control that is most of the loop";
      break;
    case Bound::kWithinL1:
      EXPECT_TRUE(pinned && IsWholeAndFull(dl1));
      break;
  }
}

TEST(VerdictSearch, NoNameThatTheWrittenRulesDoNotCarry) {
  Tables tables;
  std::map<Bound, int> names;
  std::map<Silence, int> silences;
  for (int i = 0; i < kTables; ++i) {
    const LoopMeasurement loop = tables.Next();
    const BoundVerdict verdict = VerdictOf(loop);
    SCOPED_TRACE(i);
    ++names[verdict.bound];
    ++silences[verdict.why];
    if (verdict.bound != Bound::kUnknown) {
      EXPECT_EQ(verdict.why, Silence::kNone);
      CheckName(loop, verdict);
    }
    const DataLevel level = LevelOf(loop);
    if (level == DataLevel::kL1 && !loop.references.empty()) {
      EXPECT_LE(loop.references[0].highest - loop.references[0].lowest, 64u << 10);
    }
    const double fidelity = loop.fidelity.value;
    if (HasShared(loop) || verdict.why == Silence::kContradictory) {
      EXPECT_EQ(level, DataLevel::kUnknown);
    }
    for (const Gain& gain : GainsOf(loop, {1, 1, 1})) {
      EXPECT_FALSE(HasShared(loop));
      EXPECT_NE(verdict.why, Silence::kContradictory);
      EXPECT_LE(gain.of_job.high, 1);
      const VariantFigures& f = *FindFigures(loop, gain.variant);
      EXPECT_TRUE(fidelity == 0 || (fidelity >= 0.5 && fidelity <= 2));
      EXPECT_GE(f.valid_runs, 3u);
      EXPECT_GT(f.edits.changed + f.edits.pinned, 0) << gain.variant;
      EXPECT_TRUE(!f.edits.cuts_memory_chain || f.saturation.value >= 0.85) << gain.variant;
    }
    if (HasFailure()) return;
  }
  // Each name and each reason comes up: the search has seen them all.
  EXPECT_EQ(names.size(), size_t{kBoundCount});
  EXPECT_EQ(silences.size(), size_t{kSilenceCount} - 1) << "ranks that differ are of a job";
  for (const auto& [bound, count] : names) std::printf("  %5d x %s\n", count, BoundName(bound));
  for (const auto& [why, count] : silences) std::printf("  %5d x %s\n", count, SilenceName(why));
}

}  // namespace
}  // namespace perfd
