#include "core/model/accounting.h"

#include <numeric>

namespace perfd {

const char* DropReasonName(DropReason reason) {
  switch (reason) {
    case DropReason::kForeignProcess:
      return "foreign_process";
    case DropReason::kQueueFull:
      return "queue_full";
    case DropReason::kMalformed:
      return "malformed";
    case DropReason::kSpoolFull:
      return "spool_full";
  }
  return "unknown";
}

uint64_t Accounting::TotalDropped() const {
  return std::accumulate(dropped.begin(), dropped.end(), uint64_t{0});
}

Accounting& Accounting::operator+=(const Accounting& other) {
  seen += other.seen;
  kept += other.kept;
  for (size_t i = 0; i < kDropReasonCount; ++i) dropped[i] += other.dropped[i];
  lost += other.lost;
  throttled += other.throttled;
  stack_truncated += other.stack_truncated;
  stack_skipped += other.stack_skipped;
  late_threads += other.late_threads;
  late_thread_cpu_ns += other.late_thread_cpu_ns;
  return *this;
}

OverheadFigures& OverheadFigures::operator+=(const OverheadFigures& other) {
  agent_cpu_ns += other.agent_cpu_ns;
  lost_to_agent_ns += other.lost_to_agent_ns;
  kernel_sampling_ns += other.kernel_sampling_ns;
  job_cpu_ns += other.job_cpu_ns;
  stop_ns += other.stop_ns;
  stops += other.stops;
  rank_wall_ns += other.rank_wall_ns;
  return *this;
}

}  // namespace perfd
