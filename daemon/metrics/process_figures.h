// daemon/metrics/process_figures.h - what this process uses, from /proc/self.
//
// Errors   what cannot be read is zero.
// Source   proc(5): /proc/pid/stat fields 14, 15, 22, 24; /proc/stat btime.
#ifndef DAEMON_METRICS_PROCESS_FIGURES_H_
#define DAEMON_METRICS_PROCESS_FIGURES_H_

#include <cstdint>

namespace perfd::daemon {

struct ProcessFigures {
  double cpu_seconds = 0;
  double start_time_seconds = 0;  // since the epoch
  uint64_t resident_bytes = 0;
  uint64_t open_fds = 0;
};

ProcessFigures ReadProcessFigures();

}  // namespace perfd::daemon

#endif  // DAEMON_METRICS_PROCESS_FIGURES_H_
