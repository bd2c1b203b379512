// daemon/report/location_row.h - what reports and live views say of a place without looking at ranks.
//
// Units    shares are of CPU time, and of elapsed time where every agent divides it; samples are counted beside it.
// Threads  thread-safe (pure).
#ifndef DAEMON_REPORT_LOCATION_ROW_H_
#define DAEMON_REPORT_LOCATION_ROW_H_

#include <cstdint>
#include <vector>

#include "core/model/report.h"
#include "daemon/aggregate/profile_aggregate.h"
#include "daemon/report/inclusive.h"

namespace perfd::daemon {

// Waiting loops are those of runtimes; compute loops all others of Category::kLoop.
bool IsWaitingLoop(const CodeLocation& location);
bool IsComputeLoop(const CodeLocation& location);

// Elapsed time where every agent divides it, else CPU time.
ShareBasis BasisOf(const ProfileAggregate& aggregate);
uint64_t TimeOf(const Counts& counts, ShareBasis basis);

// id, location, samples, shares and intervals.
ReportRow LocationRow(const ProfileAggregate& aggregate, const LocationTotals& location,
                      const InclusiveTime& inclusive);

// Places with samples, heaviest first (waiting has no elapsed time of its own: by CPU time), then by key: the same order for
// equal aggregates.
std::vector<uint32_t> HeaviestFirst(const ProfileAggregate& aggregate);

double RatioOf(uint64_t part, uint64_t whole);  // 0 of nothing is 0
double ShareOf(uint64_t part, uint64_t whole);  // at most 1, whatever foreign sums say

}  // namespace perfd::daemon

#endif  // DAEMON_REPORT_LOCATION_ROW_H_
