// Signals of a shadow: faults of a copy end its run; system calls are made for it or end the shadow; time ends it, too.
#include "agent/shadow/payload/payload.h"

namespace perfd::agent {
namespace {

enum : uint64_t { kSignals = 64, kMaskBytes = 8, kSetMask = 2 };
enum : uint64_t {
  kIll = 4,
  kTrap = 5,
  kBus = 7,
  kFpe = 8,
  kKill = 9,
  kSegv = 11,
  kAlarm = 14,
  kStop = 19,
  kSys = 31
};
inline constexpr uint64_t kMine[] = {kIll, kTrap, kBus, kFpe, kSegv, kAlarm, kSys};
inline constexpr uint64_t kMaxFaults = 8;

struct KernelAction {  // struct sigaction of the system call
  uint64_t handler;
  uint64_t flags;
  uint64_t restorer;
  uint64_t mask;
};

// The parts of siginfo_t and ucontext_t that are read: uapi/asm-generic/siginfo.h, arch/x86/include/uapi/asm/sigcontext.h.
struct SignalInfo {
  int32_t signal, error, code, pad;
  uint64_t address;  // of the fault; of SIGSYS: behind the instruction
  int32_t call;      // of SIGSYS
};
inline constexpr int32_t kOfFilter = 1;  // SYS_SECCOMP
inline constexpr uint64_t kContextRegisters = 40;
inline constexpr uint64_t kContextRax = kContextRegisters + 13 * 8;
inline constexpr uint64_t kContextRip = kContextRegisters + 16 * 8;

BlockState* OwnState() {
  uint64_t block;
  asm volatile("mov %%gs:%c1, %0" : "=r"(block) : "i"(BLOCK_SELF));
  return StateOf(block);
}

// Where the copy's own call returns to, if the copy has called: nothing else moves its stack pointer.
uint64_t ReturnAddress(const BlockState* state) {
  return state->in_run == 0 ? 0 : *At<uint64_t>(state->registers.rsp - 8);
}

// Of the registers of a call. Source: arch/x86/include/uapi/asm/sigcontext.h: r8, r9, r10, r11, r12-r15, rdi, rsi, rbp, rbx, rdx, rax.
CallArguments ArgumentsOf(const SignalInfo* info, uint64_t context) {
  const uint64_t* registers = At<uint64_t>(context + kContextRegisters);
  return {info->call,
          {registers[8], registers[9], registers[12], registers[2], registers[0], registers[1]}};
}

// Others that come as well wait for the end.
[[noreturn]] void EndByCall(ChildControl* child, const BlockState* state, const SignalInfo* info,
                            const CallArguments& call, ChildDone how) {
  if (FetchAdd(child->trap.count, 1) != 0) {
    for (;;) Pause();
  }
  child->trap.call = static_cast<uint32_t>(call.number);
  child->trap.place = info->address;
  child->trap.return_address = ReturnAddress(state);
  child->trap.argument = call.of[0];
  child->trap.run = static_cast<uint16_t>(child->current_run);
  child->trap.thread = static_cast<uint16_t>(state->index);
  EndShadow(child, how);
}

// The kernel has changed nothing but RCX and R11, as for any call, and goes on behind the instruction.
void OnCall(ChildControl* child, const BlockState* state, const SignalInfo* info,
            uint64_t context) {
  const CallArguments call = ArgumentsOf(info, context);
  int64_t result = 0;
  switch (MakeCall(At<RegionHeader>(state->region), state->index, call, &result)) {
    case Call::kMade:
      *At<int64_t>(context + kContextRax) = result;
      return;
    case Call::kForbidden:
      EndByCall(child, state, info, call, kChildTrapped);
    case Call::kNeverEnds:
      EndByCall(child, state, info, call, kChildLocked);
  }
}

// In any thread of the shadow, on its alternative stack. The first fault is kept; a fault inside a copy ends that run only.
void OnSignal(uint64_t signal, SignalInfo* info, uint64_t context) {
  BlockState* state = OwnState();
  auto* child = ChildOf(At<RegionHeader>(state->region));
  if (signal == kAlarm) EndShadow(child, kChildWatchdog);
  if (signal == kSys && info->code == kOfFilter) return OnCall(child, state, info, context);
  uint64_t* rip = At<uint64_t>(context + kContextRip);
  uint32_t before = FetchAdd(child->fault_count, 1);
  if (before == 0) {
    child->fault = {static_cast<uint32_t>(signal),
                    info->code,
                    info->address,
                    *rip,
                    static_cast<uint16_t>(child->current_run),
                    static_cast<uint16_t>(state->index),
                    0};
  }
  if (state->in_run == 0 || before + 1 >= kMaxFaults) EndShadow(child, kChildFaulted);
  state->progress.faulted = 1;
  *rip = AddressOf(&payload_exit_stub);
}

}  // namespace

void HandleSignals() {
  KernelAction action{0, 0, 0, 0};
  for (uint64_t signal = 1; signal <= kSignals; ++signal) {
    if (signal != kKill && signal != kStop)
      SysCall(kSysSigaction, signal, AddressOf(&action), 0, kMaskBytes);
  }
  constexpr uint64_t kSigInfo = 4, kOnStack = 0x08000000, kRestorer = 0x04000000;
  action = {AddressOf(&OnSignal), kSigInfo | kOnStack | kRestorer, AddressOf(&payload_restorer),
            ~uint64_t{0}};
  for (uint64_t signal : kMine) SysCall(kSysSigaction, signal, AddressOf(&action), 0, kMaskBytes);
  // A call that is made for the program may wait, and all threads may be in one: time must end it.
  action.mask &= ~(uint64_t{1} << (kAlarm - 1));
  SysCall(kSysSigaction, kSys, AddressOf(&action), 0, kMaskBytes);
}

// A blocked SIGSYS would kill the shadow without a word.
void OpenSignals() {
  uint64_t blocked = ~uint64_t{0};
  for (uint64_t signal : kMine) blocked &= ~(uint64_t{1} << (signal - 1));
  SysCall(kSysSigprocmask, kSetMask, AddressOf(&blocked), 0, kMaskBytes);
}

}  // namespace perfd::agent
