// daemon/report/loop_verdicts.h - from the measurements of all ranks to the verdicts of the report.
//
// Shape    FillVerdicts needs the report's loops and ranks (shares, the slowest rank): call it after them.
// Units    gains are shares of the elapsed time of the job's slowest rank (most compute seconds), of its CPU time where some agent
//          does not divide elapsed time.
// Threads  thread-safe (pure).
#ifndef DAEMON_REPORT_LOOP_VERDICTS_H_
#define DAEMON_REPORT_LOOP_VERDICTS_H_

#include <cstddef>
#include <vector>

#include "core/model/report.h"
#include "daemon/aggregate/profile_aggregate.h"

namespace perfd::daemon {

// verdicts (largest gain first) and injection; `ranks` lines of each verdict's rank table.
void FillVerdicts(const ProfileAggregate& aggregate, size_t ranks, Report& report);

// For live views and metrics: verdicts without ranks and listings, of at most `count` of the loops in `rows`.
std::vector<LoopVerdict> TopVerdicts(const ProfileAggregate& aggregate,
                                     const std::vector<ReportRow>& rows, size_t count);

}  // namespace perfd::daemon

#endif  // DAEMON_REPORT_LOOP_VERDICTS_H_
