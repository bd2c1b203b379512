// core/analysis/verdict.h - what one rank's saturations say about a loop.
//
// Shape    figures -> verdict, data level, gains, remarks. Only figures with valid runs are looked at.
//          Every edge and why it lies there: docs/adr/0008-verdict-edges.md.
// Units    saturations T(V) / T(base); gains are shares of the job's time.
// Threads  thread-safe (pure).
// Source   LS/FP rule: Bendifallah 2015, Algorithm 2 (no numbers are given there: the edges below are ours, after the
//          note to 9.2 and 10.9 of its digest); level by DL1 and gain = share x (1 - Sat): ibid., ROI; interaction of
//          NO_RED+NO_DIV with NO_DIV: ibid., 4.2.
#ifndef CORE_ANALYSIS_VERDICT_H_
#define CORE_ANALYSIS_VERDICT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/analysis/saturation.h"
#include "core/model/loop_verdict.h"

namespace perfd {

// T(REF, shadow) / T(REF, live) within which what the shadow tells is said of the program: with a name; with figures only.
struct FidelityEdges {
  double named_from = 0.8, named_to = 1.25;
  double priced_from = 0.5, priced_to = 2;
};

// Bytes: no x86 processor has larger caches of these levels for one core, and none that runs such jobs smaller first and second ones.
struct CacheEdges {
  uint64_t smallest_l1 = 24 << 10;
  uint64_t smallest_l2 = 256 << 10;
  uint64_t largest_l1 = 64 << 10;
  uint64_t largest_l2 = 4 << 20;
};

struct VerdictEdges {
  double noise = 0.05;             // a saturation is "1" within max(2 x stability, this) ...
  double most_noise = kMostNoise;  // ... but never within more than this
  double much_difference = 0.15;   // LS is "far above" FP from this difference ...
  double much_ratio = 1.25;        // ... or from this ratio, when the larger is at least
  double ratio_from = 0.5;         //     this (0.06 against 0.04 is not far apart)
  double coherence = 0.95;         // S2L below this, with its whole interval, prices stores
  double level_l2 = 0.5;           // DL1 above this: the data are in L2
  // 2 x much_difference. Of two values near each other, one whose interval reaches this far up and down may be far above the
  // other, or far below it: what is not sure is then not known at all.
  double most_reach = 0.3;
  double base_slack = 1.1;  // of saturations by different bases, which are nearly alike
  uint32_t least_runs = kLeastRuns;
  FidelityEdges fidelity = {};
  CacheEdges caches = {};
};

// `sure`: the corners of the intervals give the same verdict.
using BoundVerdict = ClassVerdict;

// Whether what the shadow told may be said of the program. A fidelity that was not measured forbids nothing.
bool MayName(const Fidelity& fidelity, const VerdictEdges& edges = {});
bool MayPrice(const Fidelity& fidelity, const VerdictEdges& edges = {});

// The figures of `variant`, or null when there are none that count.
const VariantFigures* FindFigures(const LoopMeasurement& loop, absl::string_view variant,
                                  int32_t thread = kTeam);

// kUnknown: within its own scatter of 1, but the scatter is too large to say so.
Bound BoundOf(double ls, double fp, double ls_noise, double fp_noise,
              const VerdictEdges& edges = {});
// Of the team, or of one thread. Where LS or FP was tried and does not count, DL1 may still show that no memory beyond L1
// limits the loop (kWithinL1). Where FP is the loop itself, because every address comes from loads, LS and DL1 decide. Where the
// control alone takes as long as the loop, it is kOverhead, not kBalanced. No name from few runs, from a shadow at another speed,
// from what a variant had to keep, from figures that contradict each other, or where threads share lines.
BoundVerdict VerdictOf(const LoopMeasurement& loop, int32_t thread = kTeam,
                       const VerdictEdges& edges = {});
DataLevel LevelOf(const LoopMeasurement& loop, const VerdictEdges& edges = {},
                  int32_t thread = kTeam);

// "perfect cache", "no division"; empty for variants that no fix could reach (LS, FP, CTRL, PREFETCH, bases).
std::string FixName(absl::string_view variant);
// Whether figures of the loop may price a fix, though it may have no name: of a shadow that ran at about the program's speed, and not
// where figures contradict each other or threads share lines.
bool MayPrice(const LoopMeasurement& loop, const VerdictEdges& edges = {});
// Such figures do: they have an interval, and something was changed.
bool PricesFix(const VariantFigures& figures, const VerdictEdges& edges = {});
// Nothing is gained: no name, or the saturation is not below 1.
std::optional<Gain> GainOf(absl::string_view variant, const Ratio& saturation, const Ratio& share);
// Largest first; `share` is the loop's part of the time that decides. No gain below zero.
std::vector<Gain> GainsOf(const LoopMeasurement& loop, const Ratio& share,
                          const VerdictEdges& edges = {});

// Sentences: what a weaker or missing verdict rests on, stores and coherence, interaction of reductions and divisions,
// accesses not pinned.
std::vector<std::string> RemarksOf(const LoopMeasurement& loop, const VerdictEdges& edges = {});

}  // namespace perfd

#endif  // CORE_ANALYSIS_VERDICT_H_
