// agent/attach/remote_call.h - system calls made by a stopped thread of the rank, safe against our death at every instant.
//
// Shape    the first Call chooses a thread and writes a signal frame with its whole state below its stack; Call points it at
//          `syscall; ret` with the frame as its stack; Finish gives it its own registers back. If we die in between, it
//          finishes the call, returns into rt_sigreturn and is back where it was.
// Order    frame; registers (orig_rax -1: no restart logic on ours); only then all signals blocked. Back: mask, then
//          registers, then what was below the stack. The other ways round a death leaves the thread with every signal blocked, or
//          without the frame that it needs.
// Errors   kFailedPrecondition (no thread may ever be used: the reason of the last), kUnavailable (not now), kNotFound (ended),
//          kDeadlineExceeded (the call does not return; the thread finishes it alone), kInternal.
// Source   arch/x86/kernel/signal_64.c rt_sigreturn; injection findings 2.
#ifndef AGENT_ATTACH_REMOTE_CALL_H_
#define AGENT_ATTACH_REMOTE_CALL_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/attach/gadgets.h"
#include "agent/attach/held_threads.h"
#include "agent/attach/memory.h"
#include "agent/attach/operations.h"
#include "agent/attach/thread/signal_frame.h"

namespace perfd::agent {

// What a call needs to know of the process.
struct CallSite {
  int32_t pid = 0;
  const Memory* memory = nullptr;
  Gadgets gadgets;
  XsaveLayout layout;
  int64_t deadline_ns = 0;
};

class RemoteCall {
 public:
  RemoteCall(Operations& operations, HeldThreads& held, CallSite place)
      : operations_(operations), held_(held), place_(place) {}
  ~RemoteCall() { (void)Finish(); }
  RemoteCall(const RemoteCall&) = delete;
  RemoteCall& operator=(const RemoteCall&) = delete;

  // What the call returned; a negative errno wraps around.
  absl::StatusOr<uint64_t> Call(int64_t number, const std::array<uint64_t, 6>& arguments);
  absl::Status Finish();
  // The thread did not come back in time, or did not get its own registers: it is on its way alone.
  bool lost() const { return lost_; }

 private:
  absl::Status Begin();
  absl::Status TryThread(HeldThread& thread, const std::vector<MapEntry>& maps);
  absl::Status AwaitCallStop();
  absl::Status RecordStop(int status, bool& at_call);

  Operations& operations_;
  HeldThreads& held_;
  const CallSite place_;
  HeldThread* thread_ = nullptr;
  SignalFrame frame_;
  std::vector<uint8_t> below_;  // what was where the frame is
  uint64_t signal_mask_ = 0;
  bool away_ = false;  // the thread has registers of ours
  bool lost_ = false;
};

// kUnavailable when the thread is inside a restartable sequence: moving it would lose the abort it is owed.
absl::Status CheckOutsideRseq(Operations& operations, const Memory& memory,
                              const HeldThread& thread);

}  // namespace perfd::agent

#endif  // AGENT_ATTACH_REMOTE_CALL_H_
