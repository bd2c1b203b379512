#include "agent/experiment/plan/next_stage.h"

#include <algorithm>
#include <utility>

#include "core/analysis/run_table.h"
#include "core/model/variant_name.h"

namespace perfd::agent {
namespace {

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

// Whether any run counts or not; null: none was made.
const VariantFigures* TeamFigures(const LoopMeasurement& loop, absl::string_view variant) {
  const auto found = std::find_if(
      loop.figures.begin(), loop.figures.end(),
      [&](const VariantFigures& f) { return f.variant == variant && f.thread == kTeam; });
  return found == loop.figures.end() ? nullptr : &*found;
}

uint64_t RunsRefused(const LoopMeasurement& loop, absl::string_view variant, RefusalKind kind) {
  uint64_t runs = 0;
  for (const Refusal& refusal : loop.refusals) {
    if (refusal.variant == variant && refusal.kind == kind) runs += refusal.count;
  }
  return runs;
}

// Of the team; whether they count or not.
uint64_t RunsBegun(const LoopMeasurement& loop, const VariantFigures& figures) {
  const uint64_t all = uint64_t{figures.valid_runs} + figures.invalid_runs;
  return all - std::min(all, RunsRefused(loop, figures.variant, RefusalKind::kNotRun));
}

// What ran without any run that counts: no use trying on. Where it was the machine's doing, that takes longer to say: a
// shadow has some ten runs of a variant.
bool NeverCounts(const LoopMeasurement& loop, const VariantFigures& figures) {
  constexpr uint64_t kMostBackoff = 4, kMostDisturbed = 40;
  if (figures.valid_runs > 0) return false;
  const uint64_t begun = RunsBegun(loop, figures);
  const uint64_t disturbed = RunsRefused(loop, figures.variant, RefusalKind::kMachineChanged);
  return begun >= kMostDisturbed || begun - std::min(begun, disturbed) >= kMostBackoff;
}

bool Refused(const LoopMeasurement& loop, absl::string_view variant) {
  // Refusals with an instruction, or of a variant that never ran, concern the variant; others only some of its runs.
  const VariantFigures* const figures = TeamFigures(loop, variant);
  return std::any_of(loop.refusals.begin(), loop.refusals.end(), [&](const Refusal& refusal) {
    return refusal.variant == variant &&
           (refusal.instruction != 0 || figures == nullptr || NeverCounts(loop, *figures));
  });
}

std::vector<std::string> Missing(const LoopMeasurement& loop, const StagePlan& plan,
                                 const std::vector<std::string>& wanted) {
  // By runs, whether they count or not: a variant that never counts must not take all the time.
  std::vector<std::pair<uint64_t, std::string>> known;
  for (const std::string& variant : wanted) {
    const VariantFigures* const figures = TeamFigures(loop, variant);
    const bool enough =
        figures != nullptr && figures->valid_runs > 0 && IsEnough(*figures, plan.repetitions);
    if (enough || Refused(loop, variant)) continue;
    known.emplace_back(figures == nullptr ? 0 : RunsBegun(loop, *figures), variant);
  }
  std::stable_sort(known.begin(), known.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> missing;
  missing.reserve(known.size());
  for (auto& [runs, variant] : known) missing.push_back(std::move(variant));
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

}  // namespace

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

std::vector<std::string> InstanceStage(const LoopMeasurement& loop, const StagePlan& plan) {
  std::vector<std::string> stage = FirstStage(plan);
  if (Asked(plan, "CTRL")) stage.push_back("CTRL");
  std::vector<std::string> missing;
  for (std::string& variant : stage) {
    const VariantFigures* figures = FindFigures(loop, variant);
    if (figures != nullptr && figures->shadows < plan.instances)
      missing.push_back(std::move(variant));
  }
  return missing;
}

}  // namespace perfd::agent
