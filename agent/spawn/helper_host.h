// agent/spawn/helper_host.h - a helper that starts its like: many short-lived readers without loading the program each time.
//
// Shape    HelperHost::Start runs PROGRAM kHostMode; Spawn(arguments, socket) -> pid of a new process of that program, a
//          child of the caller, with the socket on descriptor kHelperSocket, as if StartHelper had started it. In the
//          program, ServeHelpers returns once in each new process, with its arguments.
// Errors   kFailedPrecondition (the program cannot be executed), kUnavailable, kDeadlineExceeded, kInternal (the host is of
//          no more use: drop it. A process that it started too late to say so sees its socket closed and ends; it stays in
//          the process table until the caller ends).
// Threads  thread-bound. Host and processes die with the thread that started the host (PDEATHSIG, set by them).
// Safety   the host reads nothing but what the agent sends, and forks before anything foreign is opened. Its processes have
//          one layout of addresses in common: one host for each user, another one after a process has died.
// Source   clone(2) CLONE_PARENT, cmsg(3) SCM_RIGHTS.
#ifndef AGENT_SPAWN_HELPER_HOST_H_
#define AGENT_SPAWN_HELPER_HOST_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {

inline constexpr char kHostMode[] = "host";  // the first and only word

class HelperHost {
 public:
  static absl::StatusOr<std::unique_ptr<HelperHost>> Start(const std::string& name,
                                                           const std::string& program);
  ~HelperHost();
  HelperHost(const HelperHost&) = delete;
  HelperHost& operator=(const HelperHost&) = delete;

  absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& arguments, int socket);
  pid_t pid() const { return pid_; }

 private:
  HelperHost(pid_t pid, UniqueFd socket) : pid_(pid), socket_(std::move(socket)) {}

  const pid_t pid_;
  UniqueFd socket_;
};

// In the host. Nothing: the agent has no more use for it.
std::optional<std::vector<std::string>> ServeHelpers();

}  // namespace perfd::agent

#endif  // AGENT_SPAWN_HELPER_HOST_H_
