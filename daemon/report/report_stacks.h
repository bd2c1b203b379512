// daemon/report/report_stacks.h - the call paths of a report, heaviest first and bounded.
//
// Shape    what does not fit is added to one path "(other)" per rank, so each rank's sum stays.
// Threads  thread-safe (pure).
#ifndef DAEMON_REPORT_REPORT_STACKS_H_
#define DAEMON_REPORT_REPORT_STACKS_H_

#include <cstddef>
#include <vector>

#include "core/model/report.h"
#include "daemon/aggregate/profile_aggregate.h"

namespace perfd::daemon {

std::vector<ReportStack> HeaviestStacks(const ProfileAggregate& aggregate, size_t limit);

}  // namespace perfd::daemon

#endif  // DAEMON_REPORT_REPORT_STACKS_H_
