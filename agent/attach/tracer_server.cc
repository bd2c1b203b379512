#include "agent/attach/tracer_server.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "agent/attach/hold_codec.h"
#include "agent/attach/hold_runner.h"
#include "agent/attach/stop_watchdog.h"
#include "core/base/clock.h"
#include "core/base/frame.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kSendNs = 10 * kNsPerSecond;
constexpr int kHighestPriority = -20;
constexpr size_t kRoomBytes = 64 << 20;  // more than all requests of a life take
constexpr int64_t kWatchdogFactor = 2;   // times the stop that was asked for

absl::Status Send(int socket, absl::string_view message) {
  return SendFrame(socket, message, SystemClock().MonotonicNs() + kSendNs);
}

// An agent that died before this process asked to die with it: its last request may still wait in the socket.
bool AgentIsGone(int socket) {
  pollfd state{socket, POLLIN, 0};
  return ::poll(&state, 1, 0) > 0 && (state.revents & (POLLHUP | POLLERR)) != 0;
}

HoldReply RunRequest(int socket, const HoldRequest& request, HoldRunner& runner,
                     StopWatchdog& watchdog) {
  const auto about_to_stop = [&] {
    (void)Send(socket, "");  // an agent that is gone shows at the reply
    watchdog.Arm(kWatchdogFactor * request.max_stop_ns);
  };
  return runner.Run(request, about_to_stop, [&] { watchdog.Disarm(); });
}

// All or nothing: memory that is locked up to a limit (RLIMIT_MEMLOCK, without CAP_IPC_LOCK) lets
// the next allocation fail, and the tracer end. Source: mlockall(2), MCL_FUTURE.
bool LockMemory() {
  if (::mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return false;
  void* room =
      ::mmap(nullptr, kRoomBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) {
    ::munlockall();
    return false;
  }
  ::munmap(room, kRoomBytes);
  return true;
}

}  // namespace

absl::Status SetUpTracer() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  ::signal(SIGCHLD, SIG_DFL);
  if (::sigprocmask(SIG_BLOCK, &child, nullptr) != 0 || ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
    return absl::InternalError(absl::StrCat("tracer: ", strerror(errno)));
  // A stop ends as soon as we get to run; best effort (CAP_SYS_NICE).
  ::setpriority(PRIO_PROCESS, 0, kHighestPriority);
  if (!LockMemory()) LogDebug("memory is not locked (CAP_IPC_LOCK, RLIMIT_MEMLOCK)");
  return absl::OkStatus();
}

absl::Status ServeHolds(int socket, TestTrap trap) {
  if (AgentIsGone(socket)) return absl::UnavailableError("the agent is gone");
  ASSIGN_OR_RETURN(const auto watchdog, StopWatchdog::Create());
  Operations operations(trap);
  HoldRunner runner(operations);
  HoldReply reply;
  while (!reply.tracer_ends) {
    reply = {};
    ASSIGN_OR_RETURN(const std::string bytes, ReceiveFrame(socket, kNoDeadline));
    const auto request = DecodeRequest(bytes);
    if (request.ok()) {
      reply = RunRequest(socket, *request, runner, *watchdog);
    } else {
      reply.status = request.status();
    }
    RETURN_IF_ERROR(Send(socket, EncodeReply(reply)));
  }
  return absl::OkStatus();
}

}  // namespace perfd::agent
