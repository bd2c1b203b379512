// agent/app/agent_flags.h - the command line of perf-agent, over its configuration file, over the
//                           environment and defaults.
//
// Threads  thread-compatible.
#ifndef AGENT_APP_AGENT_FLAGS_H_
#define AGENT_APP_AGENT_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/app/leftovers/heal.h"
#include "agent/app/node_agent.h"

namespace perfd::agent {

inline constexpr int64_t kMaxSpoolMib = 1 << 20;

enum class AgentCommand { kServe, kExec, kDoctor, kHeal, kReplay };

// Recordings that are nodes, and their names: as many.
struct ReplayFlags {
  std::vector<std::string> files;
  std::vector<std::string> nodes;
};

struct AgentFlags {
  AgentCommand command = AgentCommand::kServe;
  AgentOptions options;
  std::string config;  // the file; empty: none
  bool check_config = false;
  std::string daemon_user;  // name or number; empty: nobody besides root and ourselves
  int64_t spool_limit_mib = 256;
  std::string log_level = "info";
  std::string log_file;              // empty: standard error
  std::vector<std::string> program;  // with exec
  HealFlags heal;
  ReplayFlags replay;
};

// Parses the command line and the file it names. Sets *exit_code and returns false when the program
// should end (--help, --version, errors).
bool ParseAgentFlags(int argc, char** argv, AgentFlags* flags, int* exit_code);

// What follows from --spool-limit-mib.
inline uint64_t SpoolLimitBytes(const AgentFlags& flags) {
  return static_cast<uint64_t>(flags.spool_limit_mib) << 20;
}

// Of the agent that is this node in the cluster: --spool-dir, or a folder of its own.
std::string SpoolOfNode(const AgentFlags& flags, const std::string& node);

// The same again, with what the file says now. Prints nothing.
absl::StatusOr<AgentFlags> ParseAgentFlagsAgain(int argc, char** argv);

}  // namespace perfd::agent

#endif  // AGENT_APP_AGENT_FLAGS_H_
