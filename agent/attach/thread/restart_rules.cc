#include "agent/attach/thread/restart_rules.h"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace perfd::agent {
namespace {

constexpr int64_t kEintr = -4;
constexpr int64_t kRestartSys = -512;
constexpr int64_t kRestartNoHand = -514;
constexpr int64_t kRestartRestartBlock = -516;
constexpr uint64_t kCallInstructionBytes = 2;  // syscall
constexpr uint16_t kCodeSegment64 = 0x33;

int64_t Signed(uint64_t value) {
  return static_cast<int64_t>(value);
}

bool RestartsFromRegisters(int64_t code) {
  return code == kRestartSys || code == kRestartNoIntr || code == kRestartNoHand;
}

}  // namespace

bool InsideCall(const user_regs_struct& registers) {
  return Signed(registers.orig_rax) >= 0;
}

CallFitness FitnessForCall(const user_regs_struct& registers) {
  if (registers.cs != kCodeSegment64) return CallFitness::kUnfit;
  if (!InsideCall(registers)) return CallFitness::kFree;
  const int64_t code = Signed(registers.rax);
  if (RestartsFromRegisters(code)) return CallFitness::kRestarts;
  if (code == kRestartRestartBlock) {
    // Stopped a second time: the call that the frame would have to name is known only to the kernel.
    const bool again = registers.orig_rax == SYS_restart_syscall;
    return again ? CallFitness::kUnfit : CallFitness::kRestartBlock;
  }
  return CallFitness::kFree;
}

bool LooksLikeFalseEintr(const user_regs_struct& registers) {
  // Waits that begin anew without harm: nothing was consumed when they return EINTR. Their timeout starts again.
  // recvfrom, recvmsg and accept return EINTR only on sockets with a timeout.
  static constexpr std::array<uint64_t, 12> kWaits = {
      SYS_epoll_wait, SYS_epoll_pwait, 441 /* epoll_pwait2 */, SYS_semop,  SYS_semtimedop,
      SYS_recvfrom,   SYS_recvmsg,     SYS_rt_sigtimedwait,    SYS_accept, SYS_accept4,
      SYS_read,       SYS_io_getevents};
  return Signed(registers.rax) == kEintr &&
         std::find(kWaits.begin(), kWaits.end(), registers.orig_rax) != kWaits.end();
}

user_regs_struct AsResumed(const user_regs_struct& registers) {
  user_regs_struct resumed = registers;
  if (InsideCall(registers)) {
    const int64_t code = Signed(registers.rax);
    if (RestartsFromRegisters(code) || code == kRestartRestartBlock) {
      resumed.rax = registers.orig_rax;
      resumed.rip -= kCallInstructionBytes;
    }
  }
  resumed.orig_rax = ~uint64_t{0};
  return resumed;
}

}  // namespace perfd::agent
