#include "agent/attach/remote_call.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/attach/thread/restart_rules.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kCallBytes = 2;
constexpr uint64_t kTrapAndDirection =
    0x500;  // eflags: the first would trap, the second belongs to string operations
constexpr uint64_t kAllSignals = ~uint64_t{0};
constexpr int kCallStop = SIGTRAP | 0x80;  // PTRACE_O_TRACESYSGOOD

// linux/rseq.h struct rseq and struct rseq_cs.
constexpr uint64_t kRseqCsOffset = 8;
struct RseqSection {
  uint32_t version;
  uint32_t flags;
  uint64_t start;
  uint64_t size;
  uint64_t abort;
};
static_assert(sizeof(RseqSection) == 32);

template <typename T>
absl::Status ReadInto(const Memory& memory, uint64_t address, T& value) {
  return memory.Read(address, {reinterpret_cast<uint8_t*>(&value), sizeof(value)});
}

absl::Status CallImpossible(int32_t tid, absl::string_view reason) {
  return absl::FailedPreconditionError(absl::StrCat("thread ", tid, ": ", reason));
}

}  // namespace

absl::Status CheckOutsideRseq(Operations& operations, const Memory& memory,
                              const HeldThread& thread) {
  const auto area = operations.Rseq(thread.tid);
  if (absl::IsNotFound(area.status())) return area.status();  // killed just now
  if (!area.ok())
    return CallImpossible(thread.tid, "the kernel does not tell about restartable sequences");
  if (area->address == 0) return absl::OkStatus();
  uint64_t section_address = 0;
  RETURN_IF_ERROR(ReadInto(memory, area->address + kRseqCsOffset, section_address));
  if (section_address == 0) return absl::OkStatus();
  RseqSection section{};
  RETURN_IF_ERROR(ReadInto(memory, section_address, section));
  if (thread.registers.rip - section.start >= section.size) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("thread ", thread.tid, " is inside a restartable sequence"));
}

absl::Status RemoteCall::TryThread(HeldThread& thread, const std::vector<MapEntry>& maps) {
  if (FitnessForCall(thread.registers) == CallFitness::kUnfit)
    return absl::UnavailableError(
        absl::StrCat("thread ", thread.tid, " is in a wait that was restarted before"));
  RETURN_IF_ERROR(CheckOutsideRseq(operations_, *place_.memory, thread));
  ASSIGN_OR_RETURN(const ThreadStatus status, ReadThreadStatus(place_.pid, thread.tid));
  if (status.seccomp_mode != 0) return CallImpossible(thread.tid, "has a seccomp filter");
  if (operations_.HasShadowStack(thread.tid))
    return CallImpossible(thread.tid, "has a shadow stack (CET)");
  ThreadState state;
  state.registers = thread.registers;
  ASSIGN_OR_RETURN(state.vector_state, operations_.VectorState(thread.tid));
  ASSIGN_OR_RETURN(state.signal_mask, operations_.SignalMask(thread.tid));
  ASSIGN_OR_RETURN(frame_, MakeSignalFrame(state, place_.gadgets.restorer, place_.layout));
  // Another time it may be.
  if (const absl::Status own = CheckOwnStack(maps, thread.stack(place_.pid), frame_.start);
      !own.ok())
    return absl::UnavailableError(own.message());
  below_.resize(frame_.bytes.size());
  RETURN_IF_ERROR(place_.memory->Read(frame_.start, below_));
  signal_mask_ = state.signal_mask;
  absl::Status written = operations_.Write(*place_.memory, frame_.start, frame_.bytes);
  if (!written.ok()) (void)operations_.Write(*place_.memory, frame_.start, below_);
  return written;
}

absl::Status RemoteCall::Begin() {
  ASSIGN_OR_RETURN(const std::vector<MapEntry>* maps, held_.Maps());
  RETURN_IF_ERROR(CheckGadgets(*place_.memory, *maps, place_.gadgets));
  std::vector<HeldThread*> order;
  for (HeldThread& thread : held_.threads()) order.push_back(&thread);
  std::stable_sort(order.begin(), order.end(), [](const HeldThread* a, const HeldThread* b) {
    return FitnessForCall(a->registers) < FitnessForCall(b->registers);
  });
  absl::Status reason = absl::NotFoundError("no thread");
  for (HeldThread* thread : order) {
    absl::Status tried = TryThread(*thread, *maps);
    if (tried.ok()) {
      thread_ = thread;
      return tried;
    }
    if (!absl::IsUnavailable(reason)) reason = tried;
  }
  return reason;
}

absl::StatusOr<uint64_t> RemoteCall::Call(int64_t number,
                                          const std::array<uint64_t, 6>& arguments) {
  if (thread_ == nullptr) RETURN_IF_ERROR(Begin());
  user_regs_struct call = thread_->registers;
  call.rip = place_.gadgets.call;
  call.rsp = frame_.start;
  call.rax = static_cast<uint64_t>(number);
  call.orig_rax = ~uint64_t{0};
  call.rdi = arguments[0], call.rsi = arguments[1], call.rdx = arguments[2];
  call.r10 = arguments[3], call.r8 = arguments[4], call.r9 = arguments[5];
  call.eflags &= ~kTrapAndDirection;
  RETURN_IF_ERROR(operations_.SetRegisters(thread_->tid, call));
  const bool first = !away_;
  away_ = true;
  if (first) RETURN_IF_ERROR(operations_.SetSignalMask(thread_->tid, kAllSignals));
  for (int stop = 0; stop < 2; ++stop) {  // entry, exit
    RETURN_IF_ERROR(operations_.ContinueToCall(thread_->tid));
    RETURN_IF_ERROR(AwaitCallStop());
  }
  ASSIGN_OR_RETURN(const user_regs_struct after, operations_.Registers(thread_->tid));
  if (after.rip != place_.gadgets.call + kCallBytes ||
      after.orig_rax != static_cast<uint64_t>(number))
    return absl::InternalError("a remote call ended elsewhere than it began");
  return after.rax;
}

absl::Status RemoteCall::AwaitCallStop() {
  bool at_call = false;
  while (!at_call) {
    const auto status = operations_.Wait(thread_->tid, place_.deadline_ns);
    if (!status.ok() || !status->has_value()) {
      lost_ = true;
      thread_->state = HeldThread::State::kRunning;
      RETURN_IF_ERROR(status.status());
      return absl::DeadlineExceededError("a remote call does not return");
    }
    RETURN_IF_ERROR(RecordStop(**status, at_call));
  }
  return absl::OkStatus();
}

absl::Status RemoteCall::RecordStop(int status, bool& at_call) {
  if (!WIFSTOPPED(status)) {
    away_ = false;
    thread_->state = HeldThread::State::kGone;
    return absl::NotFoundError("the process ended during a remote call");
  }
  const int signal = WSTOPSIG(status);
  at_call = signal == kCallStop;
  if (at_call) return absl::OkStatus();
  const bool event = status >> 16 != 0;
  if (event && signal == SIGTRAP) return operations_.ContinueToCall(thread_->tid);
  // Of the signals that come from outside only SIGSTOP cannot be blocked. The thread has not made this call yet; it takes the
  // signal when it is released, as itself.
  if (!event && signal == SIGSTOP) thread_->deliver_signal = signal;
  if (event || signal == SIGSTOP)
    return absl::UnavailableError("the process was stopped (SIGSTOP) in between");
  return absl::InternalError(absl::StrCat("signal ", signal, " in a remote call"));
}

absl::Status RemoteCall::Finish() {
  HeldThread* const thread = std::exchange(thread_, nullptr);
  const bool away = std::exchange(away_, false);
  if (thread == nullptr || lost_ || thread->state == HeldThread::State::kGone)
    return absl::OkStatus();
  absl::Status home;
  if (away) home = operations_.SetSignalMask(thread->tid, signal_mask_);
  if (away && home.ok()) home = operations_.SetRegisters(thread->tid, thread->registers);
  lost_ = !home.ok();
  // A handler's stack may be inside the thread's own, and then other data is below it. The frame is not needed any more.
  return home.ok() ? operations_.Write(*place_.memory, frame_.start, below_) : home;
}

}  // namespace perfd::agent
