// agent/shadow/forking/fault_cost.h - what it costs this machine, now, to write to pages after a fork; asked for once a minute.
//
// Units    ns per page of 4 KiB.
// Errors   without an answer: what is usual.
// Threads  thread-safe.
// Source   agent/spawn/page_costs.h; docs/benchmarks/constants.md#kusualfaultns.
#ifndef AGENT_SHADOW_FORKING_FAULT_COST_H_
#define AGENT_SHADOW_FORKING_FAULT_COST_H_

#include <string>

#include "agent/spawn/page_costs.h"

namespace perfd::agent {

inline constexpr double kUsualFaultNs = 2700;  // docs/benchmarks/constants.md#kusualfaultns
inline constexpr PageCosts kUsualCosts{kUsualFaultNs, kUsualFaultNs};

// program: perf-agent-tracer; empty: what is usual.
PageCosts CurrentPageCosts(const std::string& program);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_FORKING_FAULT_COST_H_
