// core/base/cpu_time.h - what the calling thread, or its process, has used of a CPU.
//
// Units    ns since the thread, or the process, began; whoever else ran on that CPU is not in it.
// Source   clock_gettime(2) CLOCK_THREAD_CPUTIME_ID, CLOCK_PROCESS_CPUTIME_ID.
#ifndef CORE_BASE_CPU_TIME_H_
#define CORE_BASE_CPU_TIME_H_

#include <time.h>

#include <cstdint>

#include "core/base/clock.h"

namespace perfd {

inline uint64_t CpuNsOf(clockid_t clock) {
  timespec ts{};
  clock_gettime(clock, &ts);
  return static_cast<uint64_t>(ts.tv_sec) * kNsPerSecond + static_cast<uint64_t>(ts.tv_nsec);
}

inline uint64_t ThreadCpuNs() {
  return CpuNsOf(CLOCK_THREAD_CPUTIME_ID);
}
inline uint64_t ProcessCpuNs() {
  return CpuNsOf(CLOCK_PROCESS_CPUTIME_ID);
}

}  // namespace perfd

#endif  // CORE_BASE_CPU_TIME_H_
