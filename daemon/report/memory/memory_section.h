// daemon/report/memory/memory_section.h - sampled accesses to memory of an aggregate as the section of a report. Pure.
#ifndef DAEMON_REPORT_MEMORY_MEMORY_SECTION_H_
#define DAEMON_REPORT_MEMORY_MEMORY_SECTION_H_

#include <cstddef>

#include "core/model/memory/memory_report.h"
#include "daemon/aggregate/profile_aggregate.h"

namespace perfd::daemon {

struct MemoryReportLimits {
  size_t places = 200;
  size_t references = 20;  // of each place
  size_t ranks = 1024;     // of each place
};

MemoryReport MemoryReportOf(const ProfileAggregate& aggregate, const MemoryReportLimits& limits);

}  // namespace perfd::daemon

#endif  // DAEMON_REPORT_MEMORY_MEMORY_SECTION_H_
