// daemon/aggregate/aggregate_version1.h - aggregates whose clusters were summed in samples.
//
// Shape    ConvertVersion1: the sums of version 1 become those of the state as it is now (CPU time).
// Rules    what is left of the clusters are sums of squares, so they are scaled by the mean CPU time of a sample, of the place
//          and of the job: exact where all samples stood for the same time; else the interval keeps its width in relation to
//          the share. Clocks told the period that they were opened with, too short wherever the event had rested: their time
//          becomes samples / mean frequency of the node.
// Errors   kDataLoss for indices outside their lists.
// Threads  thread-safe (pure).
// Source   docs/adr/0022-shares-by-cpu-time.md.
#ifndef DAEMON_AGGREGATE_AGGREGATE_VERSION1_H_
#define DAEMON_AGGREGATE_AGGREGATE_VERSION1_H_

#include "absl/status/status.h"
#include "daemon/aggregate/aggregate_state.h"

namespace perfd::daemon {

absl::Status ConvertVersion1(AggregateState& state);

}  // namespace perfd::daemon

#endif  // DAEMON_AGGREGATE_AGGREGATE_VERSION1_H_
