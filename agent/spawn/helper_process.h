// agent/spawn/helper_process.h - starts and ends the processes that work for the agent: readers and the tracer.
//
// Shape    StartHelper -> pid, with the socket on descriptor kHelperSocket, nothing else inherited but standard error.
//          EndHelper kills the process if it still runs, reaps it and tells how it ended; AwaitHelper does not kill. HelpersCpuNs
//          is what they have used.
// Errors   kFailedPrecondition (the program cannot be executed), kResourceExhausted (no socket).
// Threads  thread-safe: posix_spawn is safe with threads. Helpers die with the thread that started them (PDEATHSIG, set by them).
// Source   posix_spawn(3), pidfd_open(2), wait4(2), clock_getcpuclockid(3), socketpair(2).
#ifndef AGENT_SPAWN_HELPER_PROCESS_H_
#define AGENT_SPAWN_HELPER_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {

inline constexpr int kHelperSocket = 3;

struct HelperProgram {
  std::string name;  // for messages: "reader", "tracer"
  std::string path;
  std::vector<std::string> arguments = {};
  bool own_session = false;  // a Ctrl-Z at the agent's terminal does not reach it
};

absl::StatusOr<pid_t> StartHelper(const HelperProgram& program, int socket);

struct Helper {
  pid_t pid = 0;
  UniqueFd socket;  // this process's end
};
using HelperStart = absl::FunctionRef<absl::StatusOr<pid_t>(int socket)>;

// Makes a pair of sockets, and has `start` begin a helper with one of them. The name is for messages.
absl::StatusOr<Helper> StartWithSocket(const std::string& name, HelperStart start);

// A child that somebody else has started for this process: counted and ended as if StartHelper had.
void AdoptHelper(pid_t pid);

// E.g. "exit status 1" or "signal 9 (Killed)". Waits `grace_ms` for it to end by itself, and a bounded time after SIGKILL.
std::string EndHelper(pid_t pid, int grace_ms);

// Reaps it once it has ended by itself; one that goes on after `wait_ms` is left.
void AwaitHelper(pid_t pid, int wait_ms);

// Kills it and waits so long for its end; false: it waits for something that no signal ends, and is not reaped.
bool KillHelper(pid_t pid, int wait_ms);

// CPU time of all helpers of this process since its start, running and ended, ns; never falls.
uint64_t HelpersCpuNs();
// Of one that runs; 0 when it does not.
uint64_t HelperCpuNs(pid_t pid);

}  // namespace perfd::agent

#endif  // AGENT_SPAWN_HELPER_PROCESS_H_
