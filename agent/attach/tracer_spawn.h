// agent/attach/tracer_spawn.h - starts and ends the tracer process.
//
// Shape    StartTracer -> pid, with the socket on descriptor kTracerSocket and nothing else inherited but standard error, in a
//          session of its own (a Ctrl-Z at the agent's terminal does not reach it). EndTracer kills it and reaps it.
// Errors   kFailedPrecondition (the program cannot be executed).
// Threads  thread-safe. The tracer dies with the thread that started it.
// Source   posix_spawn(3), pidfd_open(2), waitid(2).
#ifndef AGENT_ATTACH_TRACER_SPAWN_H_
#define AGENT_ATTACH_TRACER_SPAWN_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace perfd {

inline constexpr int kTracerSocket = 3;

absl::StatusOr<pid_t> StartTracer(const std::string& program,
                                  const std::vector<std::string>& arguments, int socket);

// Kills at once: what the tracer holds is free from then on. E.g. "signal 9 (Killed)". Waits a bounded time.
std::string EndTracer(pid_t pid);

}  // namespace perfd

#endif  // AGENT_ATTACH_TRACER_SPAWN_H_
