// agent/attach/tracer_server.h - the life of perf-agent-tracer: one hold after the other until the agent is gone.
//
// Shape    a request frame comes; an empty frame goes back just before the rank is stopped (from then on the agent's
//          patience is short), the reply frame after it was released.
// Errors   kUnavailable (the agent is gone: the normal end), anything else: cannot serve.
// Threads  this process has one. It must have been set up by SetUpTracer.
#ifndef AGENT_ATTACH_TRACER_SERVER_H_
#define AGENT_ATTACH_TRACER_SERVER_H_

#include "absl/status/status.h"
#include "agent/attach/operations.h"

namespace perfd::agent {

// Blocks SIGCHLD, dies with the agent, takes a high priority and locks its memory (both best effort: an ordinary
// user may not).
absl::Status SetUpTracer();

// Returns OK when a thread could not be released: only the end of this process frees it.
absl::Status ServeHolds(int socket, TestTrap trap);

}  // namespace perfd::agent

#endif  // AGENT_ATTACH_TRACER_SERVER_H_
