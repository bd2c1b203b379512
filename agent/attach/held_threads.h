// agent/attach/held_threads.h - all threads of one process, stopped; released when this goes out of scope.
//
// Shape    Stop until a pass over /proc/PID/task finds no new thread; Release gives every thread back as it was, with its
//          pending signals, group stop and restarts; waits that the stop would end with EINTR are made to start again.
// Errors   Stop: kFailedPrecondition (another tracer, group-stop, 32-bit code), kNotFound (ended, or another program now),
//          kDeadlineExceeded (a thread does not stop: in vfork, or in an uninterruptible wait), kPermissionDenied.
// Threads  thread-bound, like Operations. `released()` false after Release: only the end of the tracer frees the rest.
// Source   ptrace(2): PTRACE_SEIZE, PTRACE_INTERRUPT, group-stop, signal-delivery-stop.
#ifndef AGENT_ATTACH_HELD_THREADS_H_
#define AGENT_ATTACH_HELD_THREADS_H_

#include <sys/user.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/attach/operations.h"
#include "agent/attach/thread/own_stack.h"
#include "agent/attach/thread_status.h"

namespace perfd::agent {

struct HeldThread {
  enum class State { kRunning, kStopped, kGone };
  int32_t tid = 0;
  State state = State::kRunning;
  // What it goes on with; ops that move a thread change this as well.
  user_regs_struct registers{};
  int group_stop_signal = 0;  // 0: not in a group-stop
  int deliver_signal = 0;     // handed back to it at the release
  bool repaired = false;      // EINTR was turned into a restart

  StackPlace stack(int32_t pid) const {
    return {tid, tid == pid, registers.rsp, registers.fs_base};
  }
};

class HeldThreads {
 public:
  HeldThreads(Operations& operations, int32_t pid) : operations_(operations), pid_(pid) {}
  ~HeldThreads() { Release(); }
  HeldThreads(const HeldThreads&) = delete;
  HeldThreads& operator=(const HeldThreads&) = delete;

  absl::Status Stop(const ProcessIdentity& expected, int64_t deadline_ns);
  void Release();

  std::vector<HeldThread>& threads() { return threads_; }
  // After Stop: all of them are stopped.
  int32_t repaired() const { return repaired_; }
  // As they were when somebody asked first in this stop: to read many takes long.
  absl::StatusOr<const std::vector<MapEntry>*> Maps();
  bool released() const { return released_; }

 private:
  absl::Status StopAll(int64_t deadline_ns);
  absl::Status Seize(int32_t tid);
  absl::Status AwaitStop(HeldThread& thread, int64_t deadline_ns);
  absl::Status RecordStatus(HeldThread& thread, int status);
  absl::Status CheckGroupStop() const;
  absl::Status ReadRegisters();
  bool WillHandleSignal(int32_t tid);
  void Repair(HeldThread& thread);
  void Release(HeldThread& thread);
  void ReleaseUnseen(HeldThread& thread);

  Operations& operations_;
  const int32_t pid_;
  std::vector<HeldThread> threads_;
  std::optional<std::vector<MapEntry>> maps_;
  absl::flat_hash_set<int32_t> seen_;
  int32_t repaired_ = 0;
  bool released_ = true;
};

}  // namespace perfd::agent

#endif  // AGENT_ATTACH_HELD_THREADS_H_
