// agent/pipeline/cost/own_cpu.h - what the whole agent with its helpers has used of a CPU, and whether CPUs may be one core.
//
// Units    ns since the agent began.
// Source   core/base/cpu_time.h; agent/spawn.
#ifndef AGENT_PIPELINE_COST_OWN_CPU_H_
#define AGENT_PIPELINE_COST_OWN_CPU_H_

#include <cstdint>

#include "agent/spawn/helper_process.h"
#include "core/base/cpu_time.h"

namespace perfd::agent {

inline uint64_t AgentCpuNs() {
  return ProcessCpuNs() + HelpersCpuNs();
}

// Two of the CPUs that the kernel names may be one core: where it says so, and on a virtual machine, which is told nothing that
// has to be true. Reads one small file.
bool CpusMayShareCores();

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_COST_OWN_CPU_H_
