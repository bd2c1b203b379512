// agent/attach/thread/own_stack.h - is what a thread's stack pointer points to surely its stack? Below it we write, and so does a handler.
//
// Shape    pure. Of the main thread it is the kernel's [stack]; of others the mapping with their thread control block, which C libraries
//          put at the top of the stack that a thread begins on.
// Errors   kFailedPrecondition: a coroutine's stack, a handler's, data that is walked by the stack pointer. kUnavailable: little room is
//          left, now.
// Source   glibc nptl/allocatestack.c, musl src/thread/pthread_create.c; proc(5) on [stack].
#ifndef AGENT_ATTACH_THREAD_OWN_STACK_H_
#define AGENT_ATTACH_THREAD_OWN_STACK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "agent/procfs/procfs.h"

namespace perfd::agent {

struct StackPlace {
  int32_t tid = 0;
  bool main = false;
  uint64_t stack_pointer = 0;
  uint64_t control_block = 0;  // base of FS
};

// `maps` sorted, as the kernel lists them. [low, stack pointer) is to be written to from outside, for whom no [stack] grows; below it
// there is room for a handler, too.
absl::Status CheckOwnStack(const std::vector<MapEntry>& maps, const StackPlace& place,
                           uint64_t low);

// `bytes` below it may be used by the thread itself, before whom the kernel grows a [stack].
absl::Status CheckOwnStackHolds(const std::vector<MapEntry>& maps, const StackPlace& place,
                                uint64_t bytes);

}  // namespace perfd::agent

#endif  // AGENT_ATTACH_THREAD_OWN_STACK_H_
