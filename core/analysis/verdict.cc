#include "core/analysis/verdict.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/model/variant_name.h"

namespace perfd {
namespace {

// {change, what a fix that removes its cost is called}.
constexpr std::array<std::pair<Change, const char*>, 8> kFixes = {{
    {Change::kDl1, "perfect cache"},
    {Change::kNoDiv, "no division"},
    {Change::kNoSqrt, "no square root"},
    {Change::kNoRed, "no accumulation chain"},
    {Change::kNoCall, "no calls"},
    {Change::kS2l, "no ownership of stored lines"},
    {Change::kNoStore, "no stores"},
    {Change::kGroup, "free array group"},
}};

std::string PartFix(const VariantPart& part) {
  for (const auto& [change, name] : kFixes) {
    if (change != part.change) continue;
    return change == Change::kGroup ? absl::StrCat(name, " ", part.parameter) : name;
  }
  return "";
}

double NoiseWithin(const VariantFigures& figures, const VerdictEdges& edges) {
  return std::min(NoiseOf(figures.stability, edges.noise), edges.most_noise);
}

bool IsFull(const VariantFigures& figures, const VerdictEdges& edges) {
  return figures.saturation.value >= 1 - NoiseWithin(figures, edges);
}

double ReachOf(const Ratio& ratio) {
  return std::max(ratio.high - ratio.value, ratio.value - ratio.low);
}

bool IsWhole(const VariantFigures& dl1) {
  return dl1.edits.pinned >= dl1.edits.accesses;
}

// It was run, or could not be made, and has no figure that counts.
bool DidNotCount(const LoopMeasurement& loop, absl::string_view variant, int32_t thread) {
  if (FindFigures(loop, variant, thread) != nullptr) return false;
  const bool ran =
      std::any_of(loop.figures.begin(), loop.figures.end(), [&](const VariantFigures& figures) {
        return figures.variant == variant && figures.thread == thread && figures.invalid_runs > 0;
      });
  return ran || std::any_of(loop.refusals.begin(), loop.refusals.end(),
                            [&](const Refusal& refusal) { return refusal.variant == variant; });
}

bool HasInterval(const VariantFigures& figures, const VerdictEdges& edges) {
  return figures.valid_runs >= edges.least_runs;
}

// How low the whole change could be. What had to stay may have kept all of the time; where neither of the two has cut a chain of
// dependences, no more than `other` takes, which keeps it as well.
double LeastOf(const VariantFigures& figures, const VariantFigures& other,
               const VerdictEdges& edges) {
  const double low = figures.saturation.low;
  if (figures.edits.kept == 0) return low;
  const bool unchained = figures.edits.unchained && other.edits.unchained;
  // Much that stayed would also keep the processor from looking as far ahead as it could without.
  const bool little = 2 * figures.edits.kept <= other.edits.changed + other.edits.kept;
  if (!unchained || !little || !HasInterval(other, edges)) return 0;
  return std::max(0.0, low - edges.base_slack * other.saturation.high);
}

// How far it could be from the value that the whole change would have.
std::array<double, 4> Corners(const VariantFigures& figures, const VariantFigures& other,
                              const VerdictEdges& edges) {
  const Ratio& s = figures.saturation;
  return {LeastOf(figures, other, edges), s.low, s.value, s.high};
}

// A removal that takes clearly longer than the loop has made another stream of it.
bool IsSlower(const VariantFigures& figures, const VerdictEdges& edges) {
  return figures.saturation.low > 1 + edges.much_difference;
}

// It was the loop itself: how its time differs is noise.
bool IsTheLoopItself(const VariantFigures& figures) {
  return figures.edits.changed == 0 && figures.edits.pinned == 0;
}

// FP keeps every access, because its addresses come from loads: it is the loop itself and says nothing of memory.
bool TakesNothingAway(const VariantFigures& fp) {
  return fp.edits.accesses > 0 && fp.edits.changed == 0;
}

BoundVerdict BothOf(const VariantFigures& ls, const VariantFigures& fp, const VerdictEdges& edges) {
  const auto at = [&](double ls_value, double fp_value) {
    return BoundOf(ls_value, fp_value, NoiseOf(ls.stability, edges.noise),
                   NoiseOf(fp.stability, edges.noise), edges);
  };
  const Ratio& l = ls.saturation;
  const Ratio& f = fp.saturation;
  // Slower than the loop although only instructions were deleted: it takes all of the time, or it is no longer that stream.
  const bool trusted =
      l.value <= 1 + NoiseWithin(ls, edges) && f.value <= 1 + NoiseWithin(fp, edges);
  BoundVerdict verdict{at(l.value, f.value), trusted};
  if (verdict.bound == Bound::kUnknown) return {Bound::kUnknown, false, Silence::kTooNoisy};
  bool partly_same = true;
  for (const double ls_value : Corners(ls, fp, edges)) {
    for (const double fp_value : Corners(fp, ls, edges)) {
      const bool same = at(ls_value, fp_value) == verdict.bound;
      const bool kept = ls_value < l.low || fp_value < f.low;
      verdict.sure = verdict.sure && same;
      partly_same = partly_same && (same || !kept);
    }
  }
  // Where FP keeps every access, because addresses are made of them, it cannot turn anything: LS alone decides.
  if (!partly_same && !TakesNothingAway(fp))
    return {Bound::kUnknown, false, Silence::kPartlyChanged};
  if (!verdict.sure && std::max(ReachOf(l), ReachOf(f)) > edges.most_reach)
    return {Bound::kUnknown, false, Silence::kTooNoisy};
  // A bound of what stayed is no measurement.
  const bool rests = (ls.edits.kept > 0 && at(0, f.value) != verdict.bound) ||
                     (fp.edits.kept > 0 && at(l.value, 0) != verdict.bound);
  verdict.sure = verdict.sure && (!rests || TakesNothingAway(fp));
  return verdict;
}

// The verdict has one of LS and FP only. DL1 needs neither: with every operand in L1 the loop is no faster.
BoundVerdict WithoutBoth(const LoopMeasurement& loop, int32_t thread, const VerdictEdges& edges) {
  const bool ls = DidNotCount(loop, "LS", thread);
  const bool fp = DidNotCount(loop, "FP", thread);
  if (!ls && !fp) return {};
  const bool one_counts = FindFigures(loop, ls ? "FP" : "LS", thread) != nullptr;
  const VariantFigures* dl1 = FindFigures(loop, "DL1", thread);
  if (!one_counts || dl1 == nullptr || !IsWhole(*dl1) || !IsFull(*dl1, edges))
    return {Bound::kUnknown, false, ls ? Silence::kLsDidNotCount : Silence::kFpDidNotCount};
  return {Bound::kWithinL1, dl1->saturation.low >= 1 - NoiseWithin(*dl1, edges)};
}

// Then, where the arithmetic is not the limit either, DL1 decides alone.
BoundVerdict ByDl1(const LoopMeasurement& loop, int32_t thread, const VerdictEdges& edges) {
  const VariantFigures* dl1 = FindFigures(loop, "DL1", thread);
  if (dl1 == nullptr || !IsWhole(*dl1)) return {Bound::kUnknown, false, Silence::kTakesNothingAway};
  const double one = 1 - NoiseWithin(*dl1, edges);
  if (IsFull(*dl1, edges)) return {Bound::kWithinL1, dl1->saturation.low >= one};
  if (dl1->saturation.value >= 1 - NoiseOf(dl1->stability, edges.noise))
    return {Bound::kUnknown, false, Silence::kTakesNothingAway};
  return {Bound::kMemory, dl1->saturation.high < one};
}

// Of the figures alone; whether they may be believed is asked before and after.
BoundVerdict ByFigures(const LoopMeasurement& loop, int32_t thread, const VerdictEdges& edges) {
  const VariantFigures* ls = FindFigures(loop, "LS", thread);
  const VariantFigures* fp = FindFigures(loop, "FP", thread);
  if (ls == nullptr || fp == nullptr) return WithoutBoth(loop, thread, edges);
  const bool by_dl1 = TakesNothingAway(*fp) && IsFull(*ls, edges);
  BoundVerdict verdict = by_dl1 ? ByDl1(loop, thread, edges) : BothOf(*ls, *fp, edges);
  const VariantFigures* ctrl = FindFigures(loop, "CTRL", thread);
  if (ctrl == nullptr || !IsFull(*ctrl, edges)) return verdict;
  const bool nothing_found = verdict.why == Silence::kTakesNothingAway;
  if (!nothing_found && verdict.bound != Bound::kBalanced) return verdict;
  // All of the time without the work: that is the control's, if the work was taken away.
  if (ctrl->edits.changed <= ctrl->edits.kept)
    return {Bound::kUnknown, false, Silence::kContradictory};
  const bool sure = ctrl->saturation.low >= 1 - NoiseWithin(*ctrl, edges);
  return {Bound::kOverhead, sure && (nothing_found || verdict.sure)};
}

// What a perfect cache does not make faster does not wait for memory beyond L1, however LS and FP stand.
BoundVerdict HeldAgainstDl1(BoundVerdict verdict, const LoopMeasurement& loop, int32_t thread,
                            const VerdictEdges& edges) {
  const VariantFigures* dl1 = FindFigures(loop, "DL1", thread);
  if (verdict.bound != Bound::kMemory || dl1 == nullptr || !IsWhole(*dl1)) return verdict;
  if (dl1->saturation.value > 1 + NoiseWithin(*dl1, edges))
    return {Bound::kUnknown, false, Silence::kContradictory};
  if (!IsFull(*dl1, edges)) return verdict;
  return {Bound::kWithinL1, dl1->saturation.low >= 1 - NoiseWithin(*dl1, edges)};
}

// Bytes that one pass of the loop over its data touches, as far as it was traced; 0: it was not.
uint64_t TracedBytes(const LoopMeasurement& loop) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const TracedReference& r : loop.references) {
    if (r.highest > r.lowest) ranges.emplace_back(r.lowest, r.highest);
  }
  std::sort(ranges.begin(), ranges.end());
  uint64_t bytes = 0, end = 0;
  for (const auto& [low, high] : ranges) {
    if (high <= end) continue;
    bytes += high - std::max(low, end);
    end = high;
  }
  return bytes;
}

// All that the loop touches was seen, fits so much, and was there before each run.
bool FitsWarm(const LoopMeasurement& loop, const VariantFigures& dl1, uint64_t bytes) {
  const bool seen =
      dl1.edits.accesses > 0 && loop.references.size() >= static_cast<size_t>(dl1.edits.accesses);
  return seen && loop.fidelity.caches == CachesBefore::kWarm && loop.instances == 0 &&
         TracedBytes(loop) <= bytes;
}

// In the first level of any processor.
bool FitsL1(const LoopMeasurement& loop, const VariantFigures& dl1, const VerdictEdges& edges) {
  return FitsWarm(loop, dl1, edges.caches.smallest_l1);
}

// Whether what it gains is what its name says. A variant that gains nothing has not needed the chain that it cut.
bool IsAttributable(const VariantFigures& figures, const VerdictEdges& edges) {
  return !figures.edits.cuts_memory_chain || IsFull(figures, edges);
}

// Takes away all that `part` takes away, and more.
bool IsPartOf(const VariantName& part, Change whole) {
  return std::all_of(part.parts.begin(), part.parts.end(), [whole](const VariantPart& p) {
    const bool arithmetic =
        p.change == Change::kNoDiv || p.change == Change::kNoSqrt || p.change == Change::kNoRed;
    return (whole == Change::kLs && arithmetic) ||
           (whole == Change::kFp && p.change == Change::kNoStore) ||
           (whole == Change::kCtrl && (p.change == Change::kLs || p.change == Change::kFp ||
                                       p.change == Change::kNoStore || arithmetic));
  });
}

// Whoever takes away more cannot be left with far more time.
bool LessIsMore(const LoopMeasurement& loop, int32_t thread, const VerdictEdges& edges) {
  constexpr std::array<std::pair<const char*, Change>, 3> kWholes = {
      {{"LS", Change::kLs}, {"FP", Change::kFp}, {"CTRL", Change::kCtrl}}};
  for (const auto& [variant, whole] : kWholes) {
    const VariantFigures* all = FindFigures(loop, variant, thread);
    if (all == nullptr || all->edits.kept > 0 || !HasInterval(*all, edges)) continue;
    for (const VariantFigures& part : loop.figures) {
      const bool counts =
          part.thread == thread && HasInterval(part, edges) && part.saturation.value > 0;
      if (!counts || all->saturation.low <= part.saturation.high + edges.much_difference) continue;
      const auto name = ParseVariantName(part.variant);
      if (name.ok() && IsPartOf(*name, whole)) return true;
    }
  }
  return false;
}

// No loop has such figures, whatever name they give.
bool Contradict(const LoopMeasurement& loop, Bound bound, int32_t thread,
                const VerdictEdges& edges) {
  for (const char* variant : {"LS", "FP", "DL1"}) {
    const VariantFigures* figures = FindFigures(loop, variant, thread);
    if (figures != nullptr && IsSlower(*figures, edges)) return true;
  }
  const VariantFigures* dl1 = FindFigures(loop, "DL1", thread);
  const bool far_away = bound == Bound::kMemory && dl1 != nullptr && IsWhole(*dl1);
  return (far_away && FitsL1(loop, *dl1, edges)) || LessIsMore(loop, thread, edges);
}

// Whether figures of this loop may price a fix or tell where data are, whatever its name.
bool MayBelieve(const LoopMeasurement& loop, int32_t thread, const VerdictEdges& edges) {
  return !SharesLines(loop) && VerdictOf(loop, thread, edges).why != Silence::kContradictory &&
         !Contradict(loop, Bound::kUnknown, thread, edges);
}

// "S2L is 0.42 [0.40, 0.44]".
std::string Figure(const VariantFigures& f) {
  return absl::StrFormat("%s %.2f [%.2f, %.2f]", f.variant, f.saturation.value, f.saturation.low,
                         f.saturation.high);
}

// What is left when LS or FP does not count (Bendifallah 2015, Algorithm 2 needs both; DL1 and the other one are read as in
// its performance overview, where DL1 stands for the processor's side).
void AddWeaker(const LoopMeasurement& loop, const VerdictEdges& edges,
               std::vector<std::string>& remarks) {
  if (VerdictOf(loop, kTeam, edges).bound != Bound::kWithinL1) return;
  const VariantFigures* ls = FindFigures(loop, "LS");
  const VariantFigures* fp = FindFigures(loop, "FP");
  if (ls == nullptr && fp == nullptr) return;
  if (ls != nullptr && fp != nullptr && !TakesNothingAway(*fp)) {
    remarks.push_back(absl::StrCat("accesses that hit L1 are the limit (", Figure(*ls), ", ",
                                   Figure(*fp), "), memory beyond L1 is not (",
                                   Figure(*FindFigures(loop, "DL1")), ")"));
    return;
  }
  const VariantFigures& other = ls != nullptr ? *ls : *fp;
  const char* rest = nullptr;
  if (ls != nullptr) {
    rest = IsFull(*ls, edges)
               ? "arithmetic alone is not the limit either: accesses that hit L1, the control or "
                 "the front end take all of the time"
               : "arithmetic takes part";
  } else {
    rest = IsFull(*fp, edges) ? "the accesses alone are not the limit either"
                              : "accesses that hit L1 take part";
  }
  remarks.push_back(
      absl::StrCat("memory beyond L1 is not the limit (", Figure(*FindFigures(loop, "DL1")),
                   "), and ", rest, " (", Figure(other), "); more cannot be said, as ",
                   SilenceName(fp != nullptr && ls != nullptr ? Silence::kTakesNothingAway
                               : ls != nullptr                ? Silence::kFpDidNotCount
                                                              : Silence::kLsDidNotCount)));
}

void AddByDl1(const LoopMeasurement& loop, const VerdictEdges& edges,
              std::vector<std::string>& remarks) {
  const VariantFigures* fp = FindFigures(loop, "FP");
  if (fp == nullptr || !TakesNothingAway(*fp)) return;
  if (VerdictOf(loop, kTeam, edges).bound != Bound::kMemory) return;
  remarks.push_back(absl::StrCat(SilenceName(Silence::kTakesNothingAway),
                                 " (addresses come from loads): that memory is the limit rests on ",
                                 Figure(*FindFigures(loop, "DL1"))));
}

void AddNoise(const LoopMeasurement& loop, const VerdictEdges& edges,
              std::vector<std::string>& remarks) {
  if (VerdictOf(loop, kTeam, edges).why != Silence::kTooNoisy) return;
  const VariantFigures& ls = *FindFigures(loop, "LS");
  const VariantFigures& fp = *FindFigures(loop, "FP");
  remarks.push_back(absl::StrFormat("too noisy for a verdict: %s and %s; times scatter by %.0f %%",
                                    Figure(ls), Figure(fp),
                                    100 * std::max(ls.stability, fp.stability)));
}

void AddStores(const LoopMeasurement& loop, const VerdictEdges& edges,
               std::vector<std::string>& remarks) {
  const VariantFigures* s2l = FindFigures(loop, "S2L");
  const VariantFigures* none = FindFigures(loop, "NO_STORE");
  for (const VariantFigures** figures : {&s2l, &none}) {
    const bool says = *figures != nullptr && MayName(loop.fidelity, edges) &&
                      MayPrice(loop, edges) && PricesFix(**figures, edges);
    if (!says) *figures = nullptr;
  }
  if (s2l != nullptr) {
    if (s2l->saturation.value < edges.coherence && s2l->saturation.high < 1) {
      remarks.push_back(absl::StrCat("stores cost: ", Figure(*s2l),
                                     loop.team > 1
                                         ? "; with several threads look for lines they share"
                                         : "; one thread: write allocation or write bandwidth"));
    } else if (loop.team > 1) {
      remarks.push_back(absl::StrCat("coherence costs little: ", Figure(*s2l)));
    }
  }
  if (none != nullptr && none->saturation.value < edges.coherence && none->saturation.high < 1 &&
      s2l == nullptr) {
    remarks.push_back(absl::StrCat("stores cost: ", Figure(*none)));
  }
}

void AddInteraction(const LoopMeasurement& loop, const VerdictEdges& edges,
                    std::vector<std::string>& remarks) {
  const std::string both = VariantName{{{Change::kNoDiv}, {Change::kNoRed}}}.Text();
  const VariantFigures* joint = FindFigures(loop, both);
  const VariantFigures* div = FindFigures(loop, "NO_DIV");
  if (joint == nullptr || div == nullptr || !MayName(loop.fidelity, edges) ||
      !MayBelieve(loop, kTeam, edges))
    return;
  if (!HasInterval(*joint, edges) || !HasInterval(*div, edges)) return;
  const double noise = std::max(NoiseWithin(*joint, edges), NoiseWithin(*div, edges));
  const double rest = joint->saturation.value / div->saturation.value;
  if (rest < 1 - noise && joint->saturation.high < div->saturation.low) {
    remarks.push_back(
        absl::StrFormat("reductions cost once divisions are gone: %s, that is %.2f of NO_DIV",
                        Figure(*joint), rest));
  } else {
    remarks.push_back("reductions and divisions do not interact: " + Figure(*joint));
  }
}

}  // namespace

const VariantFigures* FindFigures(const LoopMeasurement& loop, absl::string_view variant,
                                  int32_t thread) {
  for (const VariantFigures& figures : loop.figures) {
    if (figures.variant == variant && figures.thread == thread)
      return figures.valid_runs > 0 && figures.saturation.value > 0 ? &figures : nullptr;
  }
  return nullptr;
}

Bound BoundOf(double ls, double fp, double ls_noise, double fp_noise, const VerdictEdges& edges) {
  const bool ls_full = ls >= 1 - std::min(ls_noise, edges.most_noise);
  const bool fp_full = fp >= 1 - std::min(fp_noise, edges.most_noise);
  if (ls_full && fp_full) return Bound::kBalanced;
  // A stream that is slower alone takes all of the time, not more than that.
  const double larger = std::min(std::max(ls, fp), 1.0);
  const double smaller = std::min(ls, fp);
  const bool far = larger - smaller > edges.much_difference ||
                   (larger >= edges.ratio_from && larger > edges.much_ratio * smaller);
  if (far) return ls > fp ? Bound::kMemory : Bound::kArithmetic;
  // One of them full and the other near it is the first row of the table, seen through noise.
  if (ls_full || fp_full) return Bound::kBalanced;
  const bool perhaps_full = ls >= 1 - ls_noise || fp >= 1 - fp_noise;
  return perhaps_full ? Bound::kUnknown : Bound::kUnsaturated;
}

bool MayName(const Fidelity& fidelity, const VerdictEdges& edges) {
  return fidelity.value <= 0 ||
         (fidelity.value >= edges.fidelity.named_from && fidelity.value <= edges.fidelity.named_to);
}

bool MayPrice(const Fidelity& fidelity, const VerdictEdges& edges) {
  return fidelity.value <= 0 || (fidelity.value >= edges.fidelity.priced_from &&
                                 fidelity.value <= edges.fidelity.priced_to);
}

BoundVerdict VerdictOf(const LoopMeasurement& loop, int32_t thread, const VerdictEdges& edges) {
  const BoundVerdict verdict = HeldAgainstDl1(ByFigures(loop, thread, edges), loop, thread, edges);
  if (verdict.bound == Bound::kUnknown) return verdict;
  if (SharesLines(loop)) return {Bound::kUnknown, false, Silence::kSharedLines};
  if (!MayName(loop.fidelity, edges)) return {Bound::kUnknown, false, Silence::kFidelity};
  for (const char* variant : {"LS", "FP", "DL1"}) {
    const VariantFigures* figures = FindFigures(loop, variant, thread);
    if (figures == nullptr) continue;
    if (!HasInterval(*figures, edges)) return {Bound::kUnknown, false, Silence::kFewRuns};
    if (!IsAttributable(*figures, edges)) return {Bound::kUnknown, false, Silence::kMemoryChain};
  }
  if (Contradict(loop, verdict.bound, thread, edges))
    return {Bound::kUnknown, false, Silence::kContradictory};
  return verdict;
}

DataLevel LevelOf(const LoopMeasurement& loop, const VerdictEdges& edges, int32_t thread) {
  const VariantFigures* dl1 = FindFigures(loop, "DL1", thread);
  // With accesses left unpinned, DL1 says nothing of where their data are.
  if (dl1 == nullptr || !IsWhole(*dl1) || !HasInterval(*dl1, edges) ||
      !IsAttributable(*dl1, edges) || !MayName(loop.fidelity, edges) ||
      !MayBelieve(loop, thread, edges))
    return DataLevel::kUnknown;
  const double value = dl1->saturation.value;
  if (value > 1 + NoiseWithin(*dl1, edges)) return DataLevel::kUnknown;
  // More than fits there is fetched in time all the same: where from, DL1 does not tell.
  if (IsFull(*dl1, edges))
    return TracedBytes(loop) > edges.caches.largest_l1 ? DataLevel::kUnknown : DataLevel::kL1;
  if (value >= 1 - NoiseOf(dl1->stability, edges.noise)) return DataLevel::kUnknown;  // too noisy
  if (FitsL1(loop, *dl1, edges)) return DataLevel::kUnknown;
  const bool fits_l2 = TracedBytes(loop) <= edges.caches.largest_l2;
  // In the second level of any processor: what DL1 shows is something else.
  if (value <= edges.level_l2 && FitsWarm(loop, *dl1, edges.caches.smallest_l2))
    return DataLevel::kUnknown;
  return value > edges.level_l2 && fits_l2 ? DataLevel::kL2 : DataLevel::kBeyondL2;
}

std::string FixName(absl::string_view variant) {
  const auto name = ParseVariantName(variant);
  if (!name.ok()) return "";
  std::string text;
  for (const VariantPart& part : name->parts) {
    const std::string fix = PartFix(part);
    if (fix.empty()) return "";
    absl::StrAppend(&text, text.empty() ? "" : " and ", fix);
  }
  return text;
}

bool MayPrice(const LoopMeasurement& loop, const VerdictEdges& edges) {
  return MayPrice(loop.fidelity, edges) && MayBelieve(loop, kTeam, edges);
}

bool PricesFix(const VariantFigures& figures, const VerdictEdges& edges) {
  return HasInterval(figures, edges) && !IsTheLoopItself(figures) && figures.saturation.value > 0 &&
         IsAttributable(figures, edges);
}

std::optional<Gain> GainOf(absl::string_view variant, const Ratio& saturation, const Ratio& share) {
  const Ratio& s = saturation;
  std::string name = FixName(variant);
  if (name.empty() || !(s.value > 0) || s.value >= 1) return std::nullopt;
  return Gain{std::string(variant),
              std::move(name),
              {share.value * (1 - s.value), share.low * std::max(0.0, 1 - s.high),
               share.high * std::max(0.0, 1 - s.low)},
              {}};
}

std::vector<Gain> GainsOf(const LoopMeasurement& loop, const Ratio& share,
                          const VerdictEdges& edges) {
  std::vector<Gain> gains;
  if (!MayPrice(loop, edges)) return gains;
  for (const VariantFigures& figures : loop.figures) {
    if (figures.thread != kTeam || !PricesFix(figures, edges)) continue;
    if (auto gain = GainOf(figures.variant, figures.saturation, share))
      gains.push_back(*std::move(gain));
  }
  std::stable_sort(gains.begin(), gains.end(),
                   [](const Gain& a, const Gain& b) { return a.of_job.value > b.of_job.value; });
  return gains;
}

std::vector<std::string> RemarksOf(const LoopMeasurement& loop, const VerdictEdges& edges) {
  std::vector<std::string> remarks;
  AddWeaker(loop, edges, remarks);
  AddByDl1(loop, edges, remarks);
  AddNoise(loop, edges, remarks);
  AddStores(loop, edges, remarks);
  AddInteraction(loop, edges, remarks);
  if (const VariantFigures* dl1 = FindFigures(loop, "DL1");
      dl1 != nullptr && dl1->edits.pinned < dl1->edits.accesses) {
    remarks.push_back(absl::StrCat("DL1 pinned ", dl1->edits.pinned, " of ", dl1->edits.accesses,
                                   " accesses: it shows less than a perfect cache would bring"));
  }
  if (!loop.excluded_paths.empty()) {
    remarks.push_back(absl::StrCat("paths over ", absl::StrJoin(loop.excluded_paths, ", "),
                                   " are left out: measured is what runs between them"));
  }
  if (loop.instances > 0) {
    remarks.push_back(absl::StrCat("an instance is too short to be timed alone: runs go on over ",
                                   loop.instances,
                                   " of them, with what lies between; saturations are of both"));
  }
  return remarks;
}

}  // namespace perfd
