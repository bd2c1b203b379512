// agent/sample/perf_clock.h - what to add to the time of a perf record for this process's CLOCK_MONOTONIC.
//
// Shape    0 but in a time name space (some containers), whose clock is shifted for processes; perf knows of no shift.
// Units    ns.
// Errors   ParseMonotonicOffset: kInvalidArgument. A kernel without time name spaces shifts nothing.
// Source   time_namespaces(7), "/proc/PID/timens_offsets": clock, seconds, nanoseconds (0..999999999) to be added;
//          kernel/events/core.c perf_event_set_clock: CLOCK_MONOTONIC is ktime_get_mono_fast_ns, the machine's own.
#ifndef AGENT_SAMPLE_PERF_CLOCK_H_
#define AGENT_SAMPLE_PERF_CLOCK_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/procfs/procfs.h"

namespace perfd::agent {

// Of the text of timens_offsets. Pure.
absl::StatusOr<int64_t> ParseMonotonicOffset(absl::string_view text);
int64_t PerfClockOffsetNs(const ProcFs& procfs);

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_PERF_CLOCK_H_
