// agent/attach/operations.h - everything a tracer does to another process, one call per operation: the door to ptrace(2).
//
// Shape    thin: arguments in, Status out, no memory of what was done. A TestTrap sends this process a signal just before
//          its N-th operation, so that tests can prove every instant safe.
// Units    deadlines in ns of CLOCK_MONOTONIC.
// Errors   kNotFound (the thread is gone or not stopped), kPermissionDenied, kInternal (anything else).
// Threads  thread-bound: the kernel ties a tracee to the thread that seized it. SIGCHLD must be blocked.
// Source   ptrace(2); kernel/ptrace.c.
#ifndef AGENT_ATTACH_OPERATIONS_H_
#define AGENT_ATTACH_OPERATIONS_H_

#include <sys/user.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/attach/memory.h"

namespace perfd::agent {

// What the kernel knows of a thread's restartable sequences; address 0: not registered.
struct RseqArea {
  uint64_t address = 0;
  uint32_t size = 0;
};

struct TestTrap {
  int64_t before_operation = 0;  // 0: never
  int signal = 0;
};

class Operations {
 public:
  explicit Operations(TestTrap trap) : trap_(trap) {}
  Operations(const Operations&) = delete;
  Operations& operator=(const Operations&) = delete;

  // With PTRACE_O_TRACESYSGOOD alone. It is what makes our death harmless inside a system-call stop: the stop's signal number,
  // which the kernel then hands to the thread, is one that does not exist. No other option may ever be added.
  absl::Status Seize(int32_t tid);
  absl::Status Interrupt(int32_t tid);
  absl::Status Continue(int32_t tid, int signal);
  absl::Status ContinueToCall(
      int32_t tid);  // stops at the next entry to or exit from a system call
  absl::Status Detach(int32_t tid, int signal);

  absl::StatusOr<user_regs_struct> Registers(int32_t tid);
  absl::Status SetRegisters(int32_t tid, const user_regs_struct& registers);
  // Standard XSAVE format, of the maximum size the kernel knows.
  absl::StatusOr<std::vector<uint8_t>> VectorState(int32_t tid);
  absl::StatusOr<uint64_t> SignalMask(int32_t tid);
  absl::Status SetSignalMask(int32_t tid, uint64_t mask);
  absl::Status SetGsBase(int32_t tid, uint64_t base);
  absl::StatusOr<RseqArea> Rseq(int32_t tid);
  bool HasShadowStack(int32_t tid);
  // Signals wait in the queues of the thread or the process, whatever becomes of them. True when the kernel does not tell.
  bool HasQueuedSignals(int32_t tid);

  absl::Status Write(const Memory& memory, uint64_t address, std::span<const uint8_t> bytes);

  // The thread's next wait status; none at the deadline. kNotFound when there is nothing to wait for.
  absl::StatusOr<std::optional<int>> Wait(int32_t tid, int64_t deadline_ns);

 private:
  absl::Status Request(const char* name, int request, int32_t tid, uint64_t address, void* data);
  void Count();

  const TestTrap trap_;
  int64_t done_ = 0;
};

}  // namespace perfd::agent

#endif  // AGENT_ATTACH_OPERATIONS_H_
