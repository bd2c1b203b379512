#include "core/analysis/verdict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/analysis/saturation.h"
#include "core/model/variant_name.h"

namespace perfd {
namespace {

constexpr double kDoubtfulFidelity = 0.1;  // the shadow's time is further than this from live

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

// Whether the verdict makes this variant worth its price.
bool MemoryAsks(const VariantName& name) {
  return name.Has(Change::kS2l) || name.Has(Change::kNoStore) || name.Has(Change::kGroup);
}

bool ArithmeticAsks(const VariantName& name) {
  return name.Has(Change::kNoDiv) || name.Has(Change::kNoSqrt) || name.Has(Change::kNoRed);
}

bool Asked(const StagePlan& plan, absl::string_view variant) {
  return std::find(plan.asked.begin(), plan.asked.end(), variant) != plan.asked.end();
}

bool Refused(const LoopMeasurement& loop, absl::string_view variant) {
  // Refusals with an instruction, or of a variant that never ran, concern the variant; others only some of its runs.
  for (const Refusal& refusal : loop.refusals) {
    if (refusal.variant != variant) continue;
    const auto same = [&](const VariantFigures& f) { return f.variant == variant; };
    if (refusal.instruction != 0 || std::none_of(loop.figures.begin(), loop.figures.end(), same)) {
      return true;
    }
    // Ran often and never counted: no use trying on.
    const VariantFigures& figures = *std::find_if(loop.figures.begin(), loop.figures.end(), same);
    if (figures.valid_runs == 0 && figures.invalid_runs >= 4) return true;
  }
  return false;
}

std::vector<std::string> Missing(const LoopMeasurement& loop, const StagePlan& plan,
                                 const std::vector<std::string>& wanted) {
  std::vector<std::string> missing;
  for (const std::string& variant : wanted) {
    const VariantFigures* figures = FindFigures(loop, variant);
    const bool enough = figures != nullptr && IsEnough(*figures, plan.repetitions);
    if (!enough && !Refused(loop, variant)) missing.push_back(variant);
  }
  return missing;
}

std::vector<std::string> FirstStage(const StagePlan& plan) {
  std::vector<std::string> stage;
  for (const char* variant : {"LS", "FP", "DL1"}) {
    if (Asked(plan, variant)) stage.push_back(variant);
  }
  return stage;
}

std::vector<std::string> SecondStage(const StagePlan& plan, Bound bound) {
  const bool memory = bound != Bound::kArithmetic;
  const bool arithmetic = bound != Bound::kMemory;
  std::vector<std::string> stage;
  for (const std::string& variant : plan.asked) {
    const auto name = ParseVariantName(variant);
    if (!name.ok()) continue;
    if ((memory && MemoryAsks(*name)) || (arithmetic && ArithmeticAsks(*name)))
      stage.push_back(variant);
  }
  const std::string both = VariantName{{{Change::kNoDiv}, {Change::kNoRed}}}.Text();
  if (arithmetic && Asked(plan, "NO_DIV") && Asked(plan, "NO_RED") && !Asked(plan, both))
    stage.push_back(both);
  for (int k = 0; memory && plan.groups > 1 && k < std::min(plan.groups, kMostGroups); ++k) {
    std::string group = SingleVariant(Change::kGroup, k).Text();
    if (!Asked(plan, group)) stage.push_back(std::move(group));
  }
  return stage;
}

// "S2L is 0.42 [0.40, 0.44]".
std::string Figure(const VariantFigures& f) {
  return absl::StrFormat("%s %.2f [%.2f, %.2f]", f.variant, f.saturation.value, f.saturation.low,
                         f.saturation.high);
}

void AddStores(const LoopMeasurement& loop, const VerdictEdges& edges,
               std::vector<std::string>& remarks) {
  const VariantFigures* s2l = FindFigures(loop, "S2L");
  const VariantFigures* none = FindFigures(loop, "NO_STORE");
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
  if (joint == nullptr || div == nullptr) return;
  const double noise =
      std::max(NoiseOf(joint->stability, edges.noise), NoiseOf(div->stability, edges.noise));
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
  const bool ls_full = ls >= 1 - ls_noise;
  const bool fp_full = fp >= 1 - fp_noise;
  if (ls_full && fp_full) return Bound::kBalanced;
  const double larger = std::max(ls, fp);
  const double smaller = std::min(ls, fp);
  const bool far = larger - smaller > edges.much_difference ||
                   (larger >= edges.ratio_from && larger > edges.much_ratio * smaller);
  if (far) return ls > fp ? Bound::kMemory : Bound::kArithmetic;
  // One of them full and the other near it is the first row of the table, seen through noise.
  return ls_full || fp_full ? Bound::kBalanced : Bound::kUnsaturated;
}

BoundVerdict VerdictOf(const LoopMeasurement& loop, int32_t thread, const VerdictEdges& edges) {
  const VariantFigures* ls = FindFigures(loop, "LS", thread);
  const VariantFigures* fp = FindFigures(loop, "FP", thread);
  if (ls == nullptr || fp == nullptr) return {};
  const auto at = [&](double ls_value, double fp_value) {
    return BoundOf(ls_value, fp_value, NoiseOf(ls->stability, edges.noise),
                   NoiseOf(fp->stability, edges.noise), edges);
  };
  const Ratio& l = ls->saturation;
  const Ratio& f = fp->saturation;
  BoundVerdict verdict{at(l.value, f.value), true};
  for (const double ls_value : {l.low, l.high}) {
    for (const double fp_value : {f.low, f.high})
      verdict.sure = verdict.sure && at(ls_value, fp_value) == verdict.bound;
  }
  return verdict;
}

DataLevel LevelOf(const LoopMeasurement& loop, const VerdictEdges& edges) {
  const VariantFigures* dl1 = FindFigures(loop, "DL1");
  // With accesses left unpinned, DL1 says nothing of where their data are.
  if (dl1 == nullptr || dl1->pinned < dl1->accesses) return DataLevel::kUnknown;
  const double value = dl1->saturation.value;
  if (value >= 1 - NoiseOf(dl1->stability, edges.noise)) return DataLevel::kL1;
  return value > edges.level_l2 ? DataLevel::kL2 : DataLevel::kBeyondL2;
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

std::vector<Gain> GainsOf(const LoopMeasurement& loop, const Ratio& share) {
  std::vector<Gain> gains;
  for (const VariantFigures& figures : loop.figures) {
    if (figures.thread != kTeam || figures.valid_runs == 0) continue;
    const Ratio& s = figures.saturation;
    std::string name = FixName(figures.variant);
    if (name.empty() || !(s.value > 0) || s.value >= 1) continue;
    gains.push_back({figures.variant,
                     std::move(name),
                     {share.value * (1 - s.value), share.low * std::max(0.0, 1 - s.high),
                      share.high * std::max(0.0, 1 - s.low)}});
  }
  std::stable_sort(gains.begin(), gains.end(),
                   [](const Gain& a, const Gain& b) { return a.of_job.value > b.of_job.value; });
  return gains;
}

std::vector<std::string> RemarksOf(const LoopMeasurement& loop, const VerdictEdges& edges) {
  std::vector<std::string> remarks;
  AddStores(loop, edges, remarks);
  AddInteraction(loop, edges, remarks);
  if (const VariantFigures* dl1 = FindFigures(loop, "DL1");
      dl1 != nullptr && dl1->pinned < dl1->accesses) {
    remarks.push_back(absl::StrCat("DL1 pinned ", dl1->pinned, " of ", dl1->accesses,
                                   " accesses: it shows less than a perfect cache would bring"));
  }
  if (!loop.detours.empty()) {
    remarks.push_back(absl::StrCat("paths over ", absl::StrJoin(loop.detours, ", "),
                                   " are left out: measured is what runs between them"));
  }
  if (loop.fidelity.value > 0 && std::abs(loop.fidelity.value - 1) > kDoubtfulFidelity) {
    remarks.push_back(absl::StrFormat(
        "the loop took %.2f of its live time in the shadow (%s): read the saturations with care",
        loop.fidelity.value, loop.protocol));
  }
  return remarks;
}

std::vector<std::string> NextStage(const LoopMeasurement& loop, const StagePlan& plan,
                                   const VerdictEdges& edges) {
  if (loop.state == MeasureState::kRefused) return {};
  std::vector<std::string> missing = Missing(loop, plan, FirstStage(plan));
  if (!missing.empty()) return missing;
  const Bound bound = VerdictOf(loop, kTeam, edges).bound;
  missing = Missing(loop, plan, SecondStage(plan, bound));
  if (!missing.empty()) return missing;
  return Missing(loop, plan, plan.asked);
}

}  // namespace perfd
