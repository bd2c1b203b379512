// daemon/report/top_loops.h - the heaviest compute loops so far, for live views and metrics.
//
// Shape    rows without ranks, threads, their spread and the hot mark; shares as in the report.
// Units    cost: places (at most AggregateLimits::places), never ranks or threads.
// Threads  thread-safe (pure).
#ifndef DAEMON_REPORT_TOP_LOOPS_H_
#define DAEMON_REPORT_TOP_LOOPS_H_

#include <cstddef>
#include <vector>

#include "core/model/report.h"
#include "daemon/aggregate/profile_aggregate.h"

namespace perfd::daemon {

std::vector<ReportRow> TopLoops(const ProfileAggregate& aggregate, size_t count);

}  // namespace perfd::daemon

#endif  // DAEMON_REPORT_TOP_LOOPS_H_
