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

size_t AuditActionIndex(const std::string& action) {
  const auto found = std::find(kAuditActions.begin(), kAuditActions.end(), action);
  return static_cast<size_t>(std::min(found, kAuditActions.end() - 1) - kAuditActions.begin());
}

}  // namespace perfd
