// agent/wall/process_time.h - how long a process of a session lived in a window, and what its threads got of the CPUs.
//
// Units    ns.
// Source   /proc/PID/task/TID/schedstat; Documentation/scheduler/sched-stats.rst.
#ifndef AGENT_WALL_PROCESS_TIME_H_
#define AGENT_WALL_PROCESS_TIME_H_

#include <cstdint>
#include <map>

namespace perfd::agent {

struct ThreadTime {
  uint64_t run_ns = 0;   // on a CPU
  uint64_t wait_ns = 0;  // wanted one and had none

  bool operator==(const ThreadTime&) const = default;
};

struct ProcessTime {
  int32_t rank = 0;
  int32_t pid = 0;
  bool helper = false;  // a child of the rank, and part of it
  uint64_t lived_ns = 0;
  std::map<int32_t, ThreadTime> threads;  // by tid

  bool operator==(const ProcessTime&) const = default;
};

}  // namespace perfd::agent

#endif  // AGENT_WALL_PROCESS_TIME_H_
