#include "agent/attach/operations.h"

#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// XCR0 with AMX: 11008 bytes; room for what comes.
constexpr size_t kMaxVectorBytes = 65536;
// linux/elf.h NT_X86_SHSTK, since 6.6; not in the headers of Debian 12.
constexpr uint64_t kShadowStackNote = 0x204;
// The longest nap between two looks: a lost SIGCHLD costs no more.
constexpr int64_t kNapNs = kNsPerMs;

absl::Status Error(int error, const char* name, int32_t tid) {
  const std::string text = absl::StrCat(name, " thread ", tid, ": ", strerror(error));
  if (error == ESRCH) return absl::NotFoundError(text);
  if (error == EPERM || error == EACCES) return absl::PermissionDeniedError(text);
  return absl::InternalError(text);
}

void SleepUntilChild(int64_t for_ns) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const timespec nap{for_ns / kNsPerSecond, for_ns % kNsPerSecond};
  ::sigtimedwait(&child, nullptr, &nap);
}

// The kernel's interface takes numbers where it takes pointers elsewhere.
void* AsPointer(uint64_t number) {
  return reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

void Operations::Count() {
  if (++done_ == trap_.before_operation) ::kill(::getpid(), trap_.signal);
}

absl::Status Operations::Request(const char* name, int request, int32_t tid, uint64_t address,
                                 void* data) {
  Count();
  // glibc declares the request as an enumeration in C++, without the newest members.
  const auto kind = static_cast<__ptrace_request>(request);
  if (::ptrace(kind, tid, AsPointer(address), data) == 0) return absl::OkStatus();
  return Error(errno, name, tid);
}

absl::Status Operations::Seize(int32_t tid) {
  return Request("seize", PTRACE_SEIZE, tid, 0, AsPointer(PTRACE_O_TRACESYSGOOD));
}

absl::Status Operations::Interrupt(int32_t tid) {
  return Request("interrupt", PTRACE_INTERRUPT, tid, 0, nullptr);
}

absl::Status Operations::Continue(int32_t tid, int signal) {
  return Request("continue", PTRACE_CONT, tid, 0, AsPointer(static_cast<uint64_t>(signal)));
}

absl::Status Operations::ContinueToCall(int32_t tid) {
  return Request("continue", PTRACE_SYSCALL, tid, 0, nullptr);
}

absl::Status Operations::Detach(int32_t tid, int signal) {
  return Request("detach", PTRACE_DETACH, tid, 0, AsPointer(static_cast<uint64_t>(signal)));
}

absl::StatusOr<user_regs_struct> Operations::Registers(int32_t tid) {
  user_regs_struct registers{};
  RETURN_IF_ERROR(Request("registers of", PTRACE_GETREGS, tid, 0, &registers));
  return registers;
}

absl::Status Operations::SetRegisters(int32_t tid, const user_regs_struct& registers) {
  user_regs_struct copy = registers;
  return Request("set registers of", PTRACE_SETREGS, tid, 0, &copy);
}

absl::StatusOr<std::vector<uint8_t>> Operations::VectorState(int32_t tid) {
  std::vector<uint8_t> state(kMaxVectorBytes);
  iovec place{state.data(), state.size()};
  RETURN_IF_ERROR(Request("vector state of", PTRACE_GETREGSET, tid, NT_X86_XSTATE, &place));
  state.resize(place.iov_len);
  return state;
}

absl::StatusOr<uint64_t> Operations::SignalMask(int32_t tid) {
  uint64_t mask = 0;
  RETURN_IF_ERROR(Request("signal mask of", PTRACE_GETSIGMASK, tid, sizeof(mask), &mask));
  return mask;
}

absl::Status Operations::SetSignalMask(int32_t tid, uint64_t mask) {
  return Request("set signal mask of", PTRACE_SETSIGMASK, tid, sizeof(mask), &mask);
}

// Nothing but this one register: the thread may be in a system call that starts again.
absl::Status Operations::SetGsBase(int32_t tid, uint64_t base) {
  constexpr uint64_t kPlace = offsetof(struct user, regs) + offsetof(user_regs_struct, gs_base);
  return Request("set GS base of", PTRACE_POKEUSER, tid, kPlace, AsPointer(base));
}

absl::StatusOr<RseqArea> Operations::Rseq(int32_t tid) {
  Count();
  __ptrace_rseq_configuration found{};
  const auto kind = static_cast<__ptrace_request>(PTRACE_GET_RSEQ_CONFIGURATION);
  // Returns the size of what it knows; an older kernel (< 5.13) does not know the request.
  if (::ptrace(kind, tid, AsPointer(sizeof(found)), &found) < 0)
    return Error(errno, "rseq of", tid);
  return RseqArea{found.rseq_abi_pointer, found.rseq_abi_size};
}

bool Operations::HasShadowStack(int32_t tid) {
  uint64_t pointer = 0;
  iovec place{&pointer, sizeof(pointer)};
  return Request("shadow stack of", PTRACE_GETREGSET, tid, kShadowStackNote, &place).ok();
}

bool Operations::HasQueuedSignals(int32_t tid) {
  for (const uint32_t queue : {uint32_t{0}, uint32_t{PTRACE_PEEKSIGINFO_SHARED}}) {
    Count();
    __ptrace_peeksiginfo_args which{0, queue, 1};
    siginfo_t first{};
    if (::ptrace(PTRACE_PEEKSIGINFO, tid, &which, &first) != 0) return true;
  }
  return false;
}

absl::Status Operations::Write(const Memory& memory, uint64_t address,
                               std::span<const uint8_t> bytes) {
  Count();
  return memory.Write(address, bytes);
}

absl::StatusOr<std::optional<int>> Operations::Wait(int32_t tid, int64_t deadline_ns) {
  while (true) {
    int status = 0;
    const pid_t found = ::waitpid(tid, &status, __WALL | WNOHANG);
    if (found == tid) return status;
    if (found < 0 && errno != EINTR) return Error(ESRCH, "wait for", tid);
    const int64_t left_ns = deadline_ns - SystemClock().MonotonicNs();
    if (left_ns <= 0) return std::optional<int>();
    SleepUntilChild(std::min(left_ns, kNapNs));
  }
}

}  // namespace perfd::agent
