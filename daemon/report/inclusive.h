// daemon/report/inclusive.h - the time of loops together with the loops inside them, and what these call.
//
// Shape    one sum per place; for a place that is no loop, its own time. `called`: what each place calls (called_times.h), as
//          many as places, or none.
// Units    ns of CPU time and of elapsed time.
// Threads  thread-safe (pure).
// Source   a loop's parent is LoopFacts::parent_header in the same function; when that loop itself has
//          no samples (so nobody sent it), the smallest loop of lower depth around the header.
#ifndef DAEMON_REPORT_INCLUSIVE_H_
#define DAEMON_REPORT_INCLUSIVE_H_

#include <cstdint>
#include <vector>

#include "daemon/aggregate/aggregate_state.h"

namespace perfd::daemon {

struct InclusiveTime {
  uint64_t cpu_ns = 0;
  uint64_t wall_ns = 0;

  bool operator==(const InclusiveTime&) const = default;
};

std::vector<InclusiveTime> InclusiveTimes(const std::vector<LocationTotals>& locations,
                                          const std::vector<InclusiveTime>& called = {});

}  // namespace perfd::daemon

#endif  // DAEMON_REPORT_INCLUSIVE_H_
