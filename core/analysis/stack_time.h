// core/analysis/stack_time.h - the CPU time that the call paths of a report stand for.
//
// Shape    StackSeconds: one figure for each of report.stacks. The paths of a rank share the CPU time of that rank by their
//          samples, because only some samples have a path, and how many differs between nodes (by unwinding at most 50 a
//          second of all ranks of a node, of however many samples). Ranks of equal number are one here, as in ReportStack.
// Units    CPU seconds; 0 where no time is known.
// Threads  thread-safe (pure).
#ifndef CORE_ANALYSIS_STACK_TIME_H_
#define CORE_ANALYSIS_STACK_TIME_H_

#include <vector>

#include "core/model/report.h"

namespace perfd {

// Of all ranks.
double JobSeconds(const Report& report);

std::vector<double> StackSeconds(const Report& report);

}  // namespace perfd

#endif  // CORE_ANALYSIS_STACK_TIME_H_
