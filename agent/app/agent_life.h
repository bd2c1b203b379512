// agent/app/agent_life.h - the main thread of perf-agent from the start to the end: ticks, reloads,
//                          tells the service
// manager.
//
// Shape    the heartbeat follows a tick that came to its end, so that an agent whose spine hangs is
//          restarted.
// Threads  BlockSignals before the first thread starts.
#ifndef AGENT_APP_AGENT_LIFE_H_
#define AGENT_APP_AGENT_LIFE_H_

#include <sys/types.h>

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/app/agent_flags.h"
#include "agent/app/node_agent.h"
#include "core/base/unique_fd.h"
#include "core/service/service_notify.h"

namespace perfd::agent {

// The signals that the agent acts on, as a descriptor: blocked in every thread. SIGHUP is one of
// them when `reloads`.
UniqueFd BlockSignals(bool reloads);

struct AgentLife {
  int signals = -1;
  pid_t child = 0;  // the program under `exec`; 0: none
  const ServiceNotify* notify = nullptr;
  std::function<void()> reload{};  // at SIGHUP
};

// Ticks until SIGINT or SIGTERM, or until the program under `exec` ends. Returns the exit code.
// `agent` may be null: the user's program comes first, and runs on without a profile.
int ServeUntilStopped(NodeAgent* agent, const AgentLife& life);

// Ends the agent: suspends its sessions, which take their changes out of the ranks, then destroys it. Within kLongestEnd in any
// case: whatever does not answer by then is left, and the process ends at once with `exit_code`. Journals tell the next agent
// what is left in ranks.
inline constexpr absl::Duration kLongestEnd =
    absl::Seconds(17);  // TimeoutStopSec of the unit is 20 s
void EndAgent(std::unique_ptr<NodeAgent> agent, bool for_good, int exit_code);

// Whether SIGHUP means to read files again; else it ends the agent, as a closing terminal does.
bool HasFiles(const AgentFlags& flags);

// Reads the configuration again, applies what may change while the agent runs - the log here, the
// rest by `apply` - and says of each other key that changed that it needs a restart. What cannot be
// read changes nothing.
void Reload(const std::function<absl::StatusOr<AgentFlags>()>& read,
            const std::function<void(const AgentOptions&)>& apply, AgentFlags* running);

// The log's level and file.
absl::Status ApplyLog(const AgentFlags& flags);

}  // namespace perfd::agent

#endif  // AGENT_APP_AGENT_LIFE_H_
