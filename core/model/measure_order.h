// core/model/measure_order.h - which loops an agent shall measure by variants, and what that may cost.
//
// Shape    sent by the daemon once the job-wide hot set is known, and again when it changes. An order is whole: it names
//          every loop to be measured from now on and replaces all of lower revision. A loop that it names anew is taken up;
//          one that it no longer names is given up: its jump comes out, what was measured of it is kept; one that it
//          names still goes on undisturbed. An order whose revision is not higher than the highest that was seen changes
//          nothing (the daemon repeats itself after a reconnect), so orders may come twice or out of order.
//          Variants, repetitions, budget, lease and dry_run are those of the first order. Agents that do not know revisions
//          keep the first order they get; daemons that do not know them send 0 and never send another.
// Units    ns; ratio of added wall time to elapsed time.
#ifndef CORE_MODEL_MEASURE_ORDER_H_
#define CORE_MODEL_MEASURE_ORDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/pause_lease.h"
#include "core/model/profile_spec.h"

namespace perfd {

// Enough to find the loop in a rank and to name its results.
struct MeasureLoop {
  std::string loop_id;       // LocationId
  std::string location_key;  // LocationKey
  std::string module_id;     // as CodeLocation
  std::string module_path;   // as the ranks see it
  uint64_t function_low = 0;
  uint64_t header = 0;

  bool operator==(const MeasureLoop&) const = default;
};

struct MeasureOrder {
  std::string profile_id;
  uint64_t revision =
      0;  // wall clock of the daemon, ns, then at least one more each time; 0: the only one
  std::vector<MeasureLoop> loops;     // heaviest first
  std::vector<std::string> variants;  // canonical names
  int32_t repetitions = 31;
  BudgetSpec budget;
  bool recovery = false;  // the request allows copies to run in the rank itself; the site must, too
  bool dry_run = false;   // prepare and predict only: no rank is stopped, altered or forked
  // Pause only in its windows. None: the budget is this node's own part of the profile's.
  std::optional<PauseLease> lease;

  bool operator==(const MeasureOrder&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_MEASURE_ORDER_H_
