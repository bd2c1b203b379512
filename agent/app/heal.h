// agent/app/heal.h - perf-agent heal: takes out of ranks what an agent left there, without agent or daemon.
#ifndef AGENT_APP_HEAL_H_
#define AGENT_APP_HEAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "agent/app/node_agent.h"

namespace perfd::agent {

struct HealFlags {
  std::vector<int32_t> pids;
  bool all = false;  // every rank that a journal of this node names
};

// Prints a line per rank; the exit code: 0 when nothing of ours is left in any of them.
int Heal(const AgentOptions& options, const HealFlags& flags);

}  // namespace perfd::agent

#endif  // AGENT_APP_HEAL_H_
