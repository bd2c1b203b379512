// agent/pipeline/own_cpu.h - what the calling thread, and the whole agent with its helpers, have used of a CPU.
//
// Units    ns since the thread, or the agent, began.
// Source   clock_gettime(2) CLOCK_THREAD_CPUTIME_ID, CLOCK_PROCESS_CPUTIME_ID; agent/spawn.
#ifndef AGENT_PIPELINE_OWN_CPU_H_
#define AGENT_PIPELINE_OWN_CPU_H_

#include <time.h>

#include <cstdint>

#include "agent/spawn/helper_process.h"
#include "core/base/clock.h"

namespace perfd {

inline uint64_t CpuNsOf(clockid_t clock) {
  timespec ts{};
  clock_gettime(clock, &ts);
  return static_cast<uint64_t>(ts.tv_sec) * kNsPerSecond + static_cast<uint64_t>(ts.tv_nsec);
}

inline uint64_t OwnCpuNs() {
  return CpuNsOf(CLOCK_THREAD_CPUTIME_ID);
}
inline uint64_t AgentCpuNs() {
  return CpuNsOf(CLOCK_PROCESS_CPUTIME_ID) + HelpersCpuNs();
}

}  // namespace perfd

#endif  // AGENT_PIPELINE_OWN_CPU_H_
