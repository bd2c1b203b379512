// core/model/measure_order.h - which loops an agent shall measure by variants, and what that may cost.
//
// Shape    sent by the daemon once the job-wide hot set is known; a later one of the same profile replaces it.
// Units    ns; ratio of added wall time to elapsed time.
#ifndef CORE_MODEL_MEASURE_ORDER_H_
#define CORE_MODEL_MEASURE_ORDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/profile_spec.h"

namespace perfd {

// Enough to find the loop in a rank and to name its results.
struct MeasureLoop {
  std::string loop_id;       // LocationId
  std::string location_key;  // LocationKey
  std::string module_id;     // build-id in hex, else "path:" + path
  std::string module_path;   // as the ranks see it
  uint64_t function_low = 0;
  uint64_t header = 0;

  bool operator==(const MeasureLoop&) const = default;
};

struct MeasureOrder {
  std::string profile_id;
  std::vector<MeasureLoop> loops;     // heaviest first
  std::vector<std::string> variants;  // canonical names
  int32_t repetitions = 31;
  BudgetSpec budget;
  bool dry_run = false;  // prepare and predict only: no rank is stopped, altered or forked

  bool operator==(const MeasureOrder&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_MEASURE_ORDER_H_
