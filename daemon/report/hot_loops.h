// daemon/report/hot_loops.h - the loops of a job that are worth measuring by variants.
//
// Shape    the hot set of the report (core/analysis/hot_set.h), heaviest first, by what an agent needs to find them.
// Threads  thread-safe (pure).
#ifndef DAEMON_REPORT_HOT_LOOPS_H_
#define DAEMON_REPORT_HOT_LOOPS_H_

#include <vector>

#include "core/model/measure_order.h"
#include "core/model/profile_spec.h"
#include "daemon/aggregate/profile_aggregate.h"

namespace perfd {

std::vector<MeasureLoop> HotLoops(const ProfileAggregate& aggregate, const HotspotSpec& spec);

}  // namespace perfd

#endif  // DAEMON_REPORT_HOT_LOOPS_H_
