// agent/binary/stack_unwinder.h - registers and a copy of the stack -> call path, by the modules' call frame information.
//
// Shape    Create(modules) knows the code of one process as it was mapped; Unwind(copy) walks one stack.
// Units    run-time addresses of that process.
// Errors   Create: kNotFound (no module can be read). Unwind never fails: a path that cannot be followed ends early.
// Threads  thread-bound. A file that is truncated while mapped kills the process (SIGBUS): use it confined.
// Bounds   kMaxCallPathFrames per path. Memory is read from the copy alone.
// Limits   a path ends early where the copy ends, in code without a file (JIT), and where neither .eh_frame nor a frame
//          pointer tells the caller (hand-written assembly).
// Source   elfutils libdwfl.h; System V ABI AMD64 supplement 3.6.2 and 3.7; DWARF 5 section 6.4.
#ifndef AGENT_BINARY_STACK_UNWINDER_H_
#define AGENT_BINARY_STACK_UNWINDER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"
#include "core/model/stack.h"

namespace perfd::agent {

// An open file and where it is mapped. Without a file: [vdso], read from this very process, or nothing.
struct UnwindModule {
  UniqueFd file;
  CodeMapping mapping;
};

class StackUnwinder {
 public:
  static absl::StatusOr<std::unique_ptr<StackUnwinder>> Create(std::vector<UnwindModule> modules);
  ~StackUnwinder();
  StackUnwinder(const StackUnwinder&) = delete;
  StackUnwinder& operator=(const StackUnwinder&) = delete;

  CallPath Unwind(const StackCopy& copy);
  size_t modules() const;

 private:
  class Session;
  explicit StackUnwinder(std::unique_ptr<Session> session);

  std::unique_ptr<Session> session_;
};

}  // namespace perfd::agent

#endif  // AGENT_BINARY_STACK_UNWINDER_H_
