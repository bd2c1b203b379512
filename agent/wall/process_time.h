// agent/wall/process_time.h - how long a process of a session lived in a window, and what its threads got of the CPUs.
//
// Units    ns.
// Source   /proc/PID/task/TID/schedstat; Documentation/scheduler/sched-stats.rst.
#ifndef AGENT_WALL_PROCESS_TIME_H_
#define AGENT_WALL_PROCESS_TIME_H_

#include <cstdint>
#include <map>

namespace perfd::agent {

// What processes used of their CPUs between two looks.
struct CpuUse {
  uint64_t cpu_ns = 0;
  uint64_t switches =
      0;  // times a thread was put on a CPU; those of threads that ended in between are missing
  uint64_t wait_ns = 0;   // threads wanted a CPU and had none; the same are missing
  uint64_t appeared = 0;  // threads that were not there at the look before
  uint64_t ended = 0;     // threads and processes that were
  bool unknown = false;   // the system did not tell of all threads

  CpuUse& operator+=(const CpuUse& other) {
    cpu_ns += other.cpu_ns;
    switches += other.switches;
    wait_ns += other.wait_ns;
    appeared += other.appeared;
    ended += other.ended;
    unknown |= other.unknown;
    return *this;
  }
};

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
