// agent/pipeline/own_cpu.h - what the calling thread has used of a CPU.
//
// Units    ns since the thread began.
// Source   clock_gettime(2) CLOCK_THREAD_CPUTIME_ID.
#ifndef AGENT_PIPELINE_OWN_CPU_H_
#define AGENT_PIPELINE_OWN_CPU_H_

#include <time.h>

#include <cstdint>

#include "core/base/clock.h"

namespace perfd {

inline uint64_t OwnCpuNs() {
  timespec ts{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  return static_cast<uint64_t>(ts.tv_sec) * kNsPerSecond + static_cast<uint64_t>(ts.tv_nsec);
}

}  // namespace perfd

#endif  // AGENT_PIPELINE_OWN_CPU_H_
