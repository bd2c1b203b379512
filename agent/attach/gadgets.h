// agent/attach/gadgets.h - two short pieces of code that every process already has: a system call, and the return from a signal.
//
// Shape    found by bytes in executable file mappings (libc first) before the stop; checked again, by bytes, during it.
// Units    addresses of the rank.
// Errors   kFailedPrecondition: no such code (a program without a C library).
// Source   syscall = 0f 05, ret = c3; the restorer of signal handlers: mov $15,%rax (48 c7 c0 0f 00 00 00) or mov $15,%eax
//          (b8 0f 00 00 00), syscall; 15 = rt_sigreturn (asm/unistd_64.h).
#ifndef AGENT_ATTACH_GADGETS_H_
#define AGENT_ATTACH_GADGETS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/attach/memory.h"
#include "agent/procfs/procfs.h"

namespace perfd::agent {

struct Gadgets {
  uint64_t call = 0;      // syscall; ret
  uint64_t restorer = 0;  // rt_sigreturn
};

// Sets what is still 0 in `gadgets` and occurs in `code`, which starts at `address`.
void FindGadgets(uint64_t address, std::span<const uint8_t> code, Gadgets& gadgets);

absl::StatusOr<Gadgets> FindGadgets(const Memory& memory, const std::vector<MapEntry>& maps);
// The bytes are still there, in executable memory.
absl::Status CheckGadgets(const Memory& memory, const std::vector<MapEntry>& maps,
                          const Gadgets& gadgets);

}  // namespace perfd::agent

#endif  // AGENT_ATTACH_GADGETS_H_
