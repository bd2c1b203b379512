// daemon/report/report_builder.h - the answer to the user, from the merged sums.
//
// Shape    BuildReport(status, aggregate): the same report for equal aggregates.
// Units    shares, their intervals and seconds are of CPU time: the weight for cpu-clock, samples / frequency for hardware
//          events. Where every agent divides elapsed time, wall shares of it stand beside them and decide the order, the
//          hot set and gains. Samples are counted beside it: how many stand for a second differs between nodes and over time.
// Limits   what ReportLimits leaves out is said in a notice of the report; totals hold it all.
// Threads  thread-safe (pure).
// Source   min, median, max and imbalance are over all ranks of the job; a rank without a sample in
//          a place counts as zero. missing = (lost + dropped by us) / (seen + lost), where samples
//          of foreign processes and unselected ranks are not missing.
#ifndef DAEMON_REPORT_REPORT_BUILDER_H_
#define DAEMON_REPORT_REPORT_BUILDER_H_

#include <cstddef>

#include "core/model/report.h"
#include "daemon/aggregate/profile_aggregate.h"
#include "daemon/report/memory/memory_section.h"

namespace perfd::daemon {

struct ReportLimits {
  size_t rows = 5'000;              // of each table
  size_t ranks_per_row = 65'536;    // lines of a row's rank table, the heaviest
  size_t threads_per_row = 16'384;  // lines of a row's thread table, the heaviest
  size_t stacks = 20'000;           // the rest becomes "(other)" per rank
  size_t measured_ranks = 256;      // lines of a verdict's rank table, those that differ first
  MemoryReportLimits memory = {};
};

Report BuildReport(const ProfileStatus& status, const ProfileAggregate& aggregate,
                   const ReportLimits& limits = {});

}  // namespace perfd::daemon

#endif  // DAEMON_REPORT_REPORT_BUILDER_H_
