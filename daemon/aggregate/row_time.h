// daemon/aggregate/row_time.h - the CPU time that the samples of a window stand for.
//
// Shape    one per window; TimeOf(row) once for each of its rows, in their order.
// Units    ns of CPU time: the weight of software clocks, else samples / frequency.
// Rules    a window that does not tell its frequency has 1 ns per sample: next to nothing beside windows that do, and shares by
//          samples where none does. Everything else of it stays what it is.
// Bounds   kMostWindowNs per window, so that sums of foreign figures do not overflow; what is beyond counts as no time.
// Threads  thread-compatible.
// Source   perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK: the period of software clocks is in ns.
#ifndef DAEMON_AGGREGATE_ROW_TIME_H_
#define DAEMON_AGGREGATE_ROW_TIME_H_

#include <cstdint>
#include <string>

#include "core/model/window.h"

namespace perfd::daemon {

// 13 days of CPU time; a window of 5 s would need 225,000 CPUs for it.
inline constexpr uint64_t kMostWindowNs = uint64_t{1} << 50;

// Samples of this event weigh ns of CPU time.
bool WeighsNs(const std::string& event);

class RowTime {
 public:
  explicit RowTime(const SamplingSetup& setup);

  uint64_t TimeOf(const WindowRow& row);

 private:
  bool weight_is_ns_;
  uint64_t ns_per_sample_;
  uint64_t left_ns_ = kMostWindowNs;
};

}  // namespace perfd::daemon

#endif  // DAEMON_AGGREGATE_ROW_TIME_H_
