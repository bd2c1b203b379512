#include "core/model/loop_measurement.h"

#include <algorithm>

namespace perfd {

const char* MeasureStateName(MeasureState state) {
  switch (state) {
    case MeasureState::kOpen:
      return "open";
    case MeasureState::kMeasured:
      return "measured";
    case MeasureState::kRefused:
      return "refused";
    case MeasureState::kNeverEntered:
      return "never entered";
  }
  return "unknown";
}

Ratio ShownRatio(const VariantFigures& figures) {
  if (figures.valid_runs >= kLeastRuns) return figures.saturation;
  return {figures.saturation.value, 0, 0};
}

const char* FidelityReasonKey(FidelityReason reason) {
  switch (reason) {
    case FidelityReason::kUnknown:
      return "";
    case FidelityReason::kWarmerCaches:
      return "warmer_caches";
    case FidelityReason::kColderCaches:
      return "colder_caches";
    case FidelityReason::kBetween:
      return "between_instances";
    case FidelityReason::kSharedLines:
      return "shared_lines";
  }
  return "";
}

const char* FidelityReasonName(FidelityReason reason) {
  switch (reason) {
    case FidelityReason::kUnknown:
      return "";
    case FidelityReason::kWarmerCaches:
      return "runs repeated in place meet caches that the program does not";
    case FidelityReason::kColderCaches:
      return "emptied caches hold less than the program finds in them, full ones more";
    case FidelityReason::kBetween:
      return "runs go on over many instances, with what lies between them";
    case FidelityReason::kSharedLines:
      return "threads share lines, which cost what depends on who comes when";
  }
  return "";
}

bool SharesLines(const LoopMeasurement& loop) {
  return loop.fidelity.reason == FidelityReason::kSharedLines ||
         std::any_of(loop.references.begin(), loop.references.end(),
                     [](const TracedReference& reference) { return reference.shared; });
}

size_t AuditActionIndex(const std::string& action) {
  const auto found = std::find(kAuditActions.begin(), kAuditActions.end(), action);
  return static_cast<size_t>(std::min(found, kAuditActions.end() - 1) - kAuditActions.begin());
}

}  // namespace perfd
