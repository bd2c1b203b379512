// agent/app/agent_config.h - the keys of perf-agent's configuration file, bound to its flags.
#ifndef AGENT_APP_AGENT_CONFIG_H_
#define AGENT_APP_AGENT_CONFIG_H_

#include "agent/app/agent_flags.h"
#include "core/spec/config_table.h"

namespace perfd::agent {

// Valid as long as `flags` is.
ConfigTable AgentConfig(AgentFlags& flags);

}  // namespace perfd::agent

#endif  // AGENT_APP_AGENT_CONFIG_H_
