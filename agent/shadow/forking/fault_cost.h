// agent/shadow/forking/fault_cost.h - what it costs this machine, now, to copy a page that two mappings share when it is written to.
//
// Shape    MeasureCopyFaultNs() does it with some hundred pages of its own; CopyFaultNs() keeps the answer for a minute.
// Units    ns per page of 4 KiB, of a process whose other threads rest.
// Errors   without memory: what is usual.
// Threads  thread-safe.
// Source   a private mapping of a file that was read is copied on the first write as a page after a fork is: within a third of
//          each other (injection_bench --part faults). 0.6 us on a quiet machine, 3 us on a busy one.
#ifndef AGENT_SHADOW_FORKING_FAULT_COST_H_
#define AGENT_SHADOW_FORKING_FAULT_COST_H_

#include <optional>

namespace perfd::agent {

inline constexpr double kUsualFaultNs = 2700;  // docs/benchmarks/constants.md#kusualfaultns

std::optional<double> MeasureCopyFaultNs();
double CopyFaultNs();

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_FORKING_FAULT_COST_H_
