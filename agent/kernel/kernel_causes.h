// agent/kernel/kernel_causes.h - why a thread was in the kernel: by the function through which it came in.
//
// Shape    Parse(text of /proc/kallsyms) keeps the few symbols that tell something; Of(chain) asks for one sample. Pure.
// Units    run-time addresses of the kernel.
// Errors   symbols that may not be seen are all 0: then nothing is known(), and everything kUnknown.
// Threads  thread-compatible; const calls from any thread.
// Source   arch/x86/entry: entry_64.S (asm_*), syscall_64.tbl; arch/x86/include/asm/syscall_wrapper.h (__x64_sys_NAME, __ia32_,
//          which may jump to others, __do_sys_NAME for one, and are then not in the chain); kernel/kallsyms.c s_show,
//          kptr_restrict. System calls by section 2 of the manual.
#ifndef AGENT_KERNEL_KERNEL_CAUSES_H_
#define AGENT_KERNEL_KERNEL_CAUSES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/model/code.h"

namespace perfd::agent {

class KernelCauses {
 public:
  KernelCauses() = default;
  static KernelCauses Parse(absl::string_view kallsyms);

  bool known() const { return !ranges_.empty(); }
  // Innermost first: the instruction, then return addresses. The outermost function that tells a cause decides: what a system
  // call touches for the first time, or what interrupts it, is part of it.
  KernelCause Of(std::span<const uint64_t> chain) const;

 private:
  // What a function says about who comes through it.
  enum class Says : uint8_t { kNothing, kEntered, kCause };
  struct Range {
    uint64_t start = 0;  // up to the start of the next one
    Says says = Says::kNothing;
    KernelCause cause = KernelCause::kUnknown;
  };
  static Range Judge(uint64_t start, absl::string_view symbol);

  std::vector<Range> ranges_;  // by start
};

}  // namespace perfd::agent

#endif  // AGENT_KERNEL_KERNEL_CAUSES_H_
