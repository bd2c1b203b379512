// agent/pipeline/own_cpu.h - what the whole agent with its helpers has used of a CPU.
//
// Units    ns since the agent began.
// Source   core/base/cpu_time.h; agent/spawn.
#ifndef AGENT_PIPELINE_OWN_CPU_H_
#define AGENT_PIPELINE_OWN_CPU_H_

#include <cstdint>

#include "agent/spawn/helper_process.h"
#include "core/base/cpu_time.h"

namespace perfd::agent {

inline uint64_t AgentCpuNs() {
  return ProcessCpuNs() + HelpersCpuNs();
}

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_OWN_CPU_H_
