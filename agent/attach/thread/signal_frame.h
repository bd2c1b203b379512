// agent/attach/thread/signal_frame.h - a thread's whole state as the frame of a signal handler, which rt_sigreturn restores. Pure.
//
// Shape    bytes for one place below the stack pointer and its red zone: return address (the restorer), ucontext, siginfo,
//          then the XSAVE image. With the stack pointer at `start`, `ret` enters the restorer, which restores everything.
// Units    addresses of the rank.
// Errors   kFailedPrecondition: live AMX tiles (sigreturn would lose them), an XSAVE image of an unknown shape.
// Source   arch/x86/kernel/signal_64.c x64_setup_rt_frame, restore_sigcontext; fpu/signal.c check_xstate_in_sigframe;
//          asm/sigcontext.h struct _fpx_sw_bytes; Intel SDM 1, 13.4 (standard form), CPUID leaf 0xD.
#ifndef AGENT_ATTACH_THREAD_SIGNAL_FRAME_H_
#define AGENT_ATTACH_THREAD_SIGNAL_FRAME_H_

#include <sys/user.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace perfd::agent {

// Where the CPU puts each state component in the standard format; size 0: it has no such component.
struct XsaveLayout {
  struct Component {
    uint32_t offset = 0;
    uint32_t size = 0;
  };
  std::array<Component, 64> components{};

  static XsaveLayout OfThisCpu();
  // Bytes of an image with these components.
  uint32_t Size(uint64_t components_mask) const;
};

struct ThreadState {
  user_regs_struct registers{};
  std::vector<uint8_t> vector_state;  // as PTRACE_GETREGSET returns it
  uint64_t signal_mask = 0;
};

struct SignalFrame {
  uint64_t start = 0;  // address of the first byte
  std::vector<uint8_t> bytes;
};

// Bytes of a thread's own XSAVE image, without tile data; kFailedPrecondition as above.
absl::StatusOr<uint32_t> XsaveBytes(std::span<const uint8_t> vector_state,
                                    const XsaveLayout& layout);
absl::StatusOr<SignalFrame> MakeSignalFrame(const ThreadState& state, uint64_t restorer,
                                            const XsaveLayout& layout);

}  // namespace perfd::agent

#endif  // AGENT_ATTACH_THREAD_SIGNAL_FRAME_H_
