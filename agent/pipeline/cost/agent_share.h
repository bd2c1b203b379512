// agent/pipeline/cost/agent_share.h - how much of the agent's CPU time the ranks of its node can have lost.
//
// Shape    LostToAgentNs(span) -> 0..span.agent_cpu_ns; all of it where the ranks' waits are not known.
// Model    a rank loses what the agent runs while a thread of it wants that CPU, and the scheduler tells how long threads wanted one
//          and had none, whoever had it. On another CPU the agent costs nothing, unless both are one core: then whoever
//          runs beside it loses half of the core at most.
// Units    ns.
// Threads  thread-safe (pure).
// Source   promise P4; Documentation/scheduler/sched-stats.rst (run_delay).
#ifndef AGENT_PIPELINE_COST_AGENT_SHARE_H_
#define AGENT_PIPELINE_COST_AGENT_SHARE_H_

#include <algorithm>
#include <cstdint>

namespace perfd::agent {

struct AgentSpan {
  uint64_t agent_cpu_ns = 0;
  uint64_t rank_wait_ns = 0;  // the ranks' threads wanted a CPU, summed over them
  bool waits_known = false;   // of all their threads
  bool shared_cores = true;   // CPUs of the node may be one core
};

inline uint64_t LostToAgentNs(const AgentSpan& span) {
  if (!span.waits_known) return span.agent_cpu_ns;
  const uint64_t beside_ns = span.shared_cores ? span.agent_cpu_ns / 2 : 0;
  const uint64_t rest_ns = span.agent_cpu_ns - beside_ns;
  return beside_ns + std::min(rest_ns, span.rank_wait_ns);
}

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_COST_AGENT_SHARE_H_
