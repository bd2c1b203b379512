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
#include "daemon/report/called_times.h"
#include "daemon/report/inclusive.h"

namespace perfd::daemon {

// Waiting loops are those of runtimes; compute loops all others of Category::kLoop.
bool IsWaitingLoop(const CodeLocation& location);
bool IsComputeLoop(const CodeLocation& location);

// Elapsed time where every agent divides it, else CPU time.
ShareBasis BasisOf(const ProfileAggregate& aggregate);
uint64_t TimeOf(const Counts& counts, ShareBasis basis);

// Part of the job's CPU time whose threads ended before they could be sampled: intervals of shares contain what it may have been.
double UnsampledPart(const JobTotals& totals);

// What the aggregate tells of each place, by index.
class PlaceTimes {
 public:
  explicit PlaceTimes(const ProfileAggregate& aggregate);

  // Its own, and of what it calls.
  uint64_t OwnAndCalled(size_t place, ShareBasis basis) const;
  // id, location, samples, shares and intervals.
  ReportRow Row(size_t place) const;

 private:
  Interval Widened(const Interval& sampled) const;

  const ProfileAggregate& aggregate_;
  const double unsampled_;
  std::vector<CalledTime> called_;
  std::vector<InclusiveTime> inclusive_;
};

// Places with samples, or with functions that they call, heaviest first (waiting has no elapsed time of its own: by CPU time),
// then by key: the same order for equal aggregates.
std::vector<uint32_t> HeaviestFirst(const ProfileAggregate& aggregate, const PlaceTimes& times);

}  // namespace perfd::daemon

#endif  // DAEMON_REPORT_LOCATION_ROW_H_
