// agent/attach/thread_status.h - what /proc says about one thread that decides whether it may be stopped and used.
//
// Shape    ParseThreadStatus is pure (foreign bytes: a thread may choose its name); ReadThreadStatus reads one thread.
// Errors   kNotFound (thread gone), kInvalidArgument (no State line).
// Source   proc(5) /proc/PID/status; Documentation/arch/x86/shstk.rst (x86_Thread_features); signal(7).
#ifndef AGENT_ATTACH_THREAD_STATUS_H_
#define AGENT_ATTACH_THREAD_STATUS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perfd::agent {

struct ThreadStatus {
  char state = '?';
  int32_t tracer_pid = 0;
  int32_t seccomp_mode = 0;
  bool shadow_stack = false;
  // Signal sets: bit n - 1 is signal n.
  uint64_t pending = 0;  // of the thread and of the process
  uint64_t blocked = 0;
  uint64_t ignored = 0;
  uint64_t caught = 0;
};

// Which process this is; also changes when it executes another program.
struct ProcessIdentity {
  uint64_t start_ticks = 0;
  uint64_t stack_start = 0;  // 0 without the right to see it

  bool operator==(const ProcessIdentity&) const = default;
};

absl::StatusOr<ThreadStatus> ParseThreadStatus(absl::string_view text);
absl::StatusOr<ThreadStatus> ReadThreadStatus(int32_t pid, int32_t tid);
absl::StatusOr<ProcessIdentity> ReadIdentity(int32_t pid);

// A signal waits that the thread will act on as soon as it runs.
bool SignalWillBeHandled(const ThreadStatus& status);
bool IsDead(const ThreadStatus& status);
bool IsStopped(const ThreadStatus& status);

// kFailedPrecondition with the reason why nothing may be injected: another tracer, a stopped process, a seccomp filter, a
// shadow stack.
absl::Status CheckInjectable(const ThreadStatus& status, int32_t pid);

}  // namespace perfd::agent

#endif  // AGENT_ATTACH_THREAD_STATUS_H_
