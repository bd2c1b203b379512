// agent/app/agent_flags.h - the command line of perf-agent.
#ifndef AGENT_APP_AGENT_FLAGS_H_
#define AGENT_APP_AGENT_FLAGS_H_

#include <string>
#include <vector>

#include "agent/app/heal.h"
#include "agent/app/node_agent.h"
#include "core/base/log.h"

namespace perfd {

enum class AgentCommand { kServe, kExec, kDoctor, kHeal };

struct AgentFlags {
  AgentCommand command = AgentCommand::kServe;
  AgentOptions options;
  LogLevel log_level = LogLevel::kInfo;
  std::vector<std::string> program;  // with exec
  HealFlags heal;
};

// Parses the command line. Sets *exit_code and returns false when the program should end (--help, --version, errors).
bool ParseAgentFlags(int argc, char** argv, AgentFlags* flags, int* exit_code);

}  // namespace perfd

#endif  // AGENT_APP_AGENT_FLAGS_H_
