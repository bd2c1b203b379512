// agent/attach/thread/restart_rules.h - threads stopped inside a system call: how they go on, and which may make a remote call. Pure.
//
// Shape    a stopped thread is inside a call when orig_rax >= 0; rax then holds the kernel's private restart code or a result.
// Source   arch/x86/kernel/signal.c arch_do_signal_or_restart; include/linux/errno.h (ERESTART*); signal(7) "Interruption
//          of system calls and library functions by stop signals": the calls that return EINTR although no handler ran.
#ifndef AGENT_ATTACH_THREAD_RESTART_RULES_H_
#define AGENT_ATTACH_THREAD_RESTART_RULES_H_

#include <sys/user.h>

#include <cstdint>

namespace perfd::agent {

inline constexpr int64_t kRestartNoIntr = -513;  // ERESTARTNOINTR: starts again, always

// In the order of preference.
enum class CallFitness {
  kFree,          // not inside a call, or the call has its result
  kRestarts,      // starts again from its registers
  kRestartBlock,  // starts again with its remaining time; with its full time if the tracer dies
  kUnfit,         // must not be used
};

bool InsideCall(const user_regs_struct& registers);
CallFitness FitnessForCall(const user_regs_struct& registers);

// The stop itself made this call return EINTR, unless a signal that the thread will handle is waiting: give it kRestartNoIntr.
bool LooksLikeFalseEintr(const user_regs_struct& registers);

// Registers that go on in user mode as the kernel would have gone on after the stop: for a frame that rt_sigreturn restores.
user_regs_struct AsResumed(const user_regs_struct& registers);

}  // namespace perfd::agent

#endif  // AGENT_ATTACH_THREAD_RESTART_RULES_H_
