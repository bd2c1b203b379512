// daemon/report/called_times.h - the time of functions that loops call.
//
// Shape    one for each of the aggregate's places; 0 for what calls nothing, or where there are no call paths.
// Units    ns of CPU time and of elapsed time; shares of those of the job, with 95 % intervals.
// Threads  thread-safe (pure).
// Source   time of a place, known from all samples, times the part of its call paths that go through the loop
//          (daemon/aggregate/paths/called_parts.h). The interval is that of the place's share times that of a part of so many
//          paths (Wilson), added up over places as if all were off to the same side: too wide rather than too narrow.
#ifndef DAEMON_REPORT_CALLED_TIMES_H_
#define DAEMON_REPORT_CALLED_TIMES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/model/report.h"
#include "daemon/aggregate/profile_aggregate.h"
#include "daemon/report/inclusive.h"

namespace perfd::daemon {

struct CalledTime {
  InclusiveTime time;
  CalledShare cpu;
  CalledShare wall;
};

std::vector<CalledTime> CalledTimes(const ProfileAggregate& aggregate);

// The same of one rank, by LocationId of the loop: its own time in each place, divided as that of the job.
absl::flat_hash_map<std::string, InclusiveTime> CalledTimesOf(const ProfileAggregate& aggregate,
                                                              const RankInfo& rank);

}  // namespace perfd::daemon

#endif  // DAEMON_REPORT_CALLED_TIMES_H_
