#include "core/model/loop_measurement.h"

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

}  // namespace perfd
