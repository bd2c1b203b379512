#include "agent/attach/held_threads.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "agent/attach/thread/restart_rules.h"
#include "agent/procfs/procfs.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kScanNs = 2 * kNsPerMs;  // between two looks at a thread that does not stop
constexpr int kCallStop = SIGTRAP | 0x80;
constexpr uint64_t kCodeSegment64 = 0x33;

int EventOf(int status) {
  return status >> 16;
}

bool Ended(int status) {
  return WIFEXITED(status) || WIFSIGNALED(status);
}

}  // namespace

absl::Status HeldThreads::Stop(const ProcessIdentity& expected, int64_t deadline_ns) {
  RETURN_IF_ERROR(StopAll(deadline_ns));
  std::erase_if(threads_, [](const HeldThread& t) { return t.state == HeldThread::State::kGone; });
  RETURN_IF_ERROR(CheckGroupStop());
  if (threads_.empty()) return absl::NotFoundError(absl::StrCat("process ", pid_, " has ended"));
  ASSIGN_OR_RETURN(const ProcessIdentity found, ReadIdentity(pid_));
  if (found != expected)
    return absl::NotFoundError(absl::StrCat("process ", pid_, " is another program now"));
  return ReadRegisters();
}

absl::Status HeldThreads::StopAll(int64_t deadline_ns) {
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<int32_t> tids, ProcFs().Threads(pid_));
    const size_t known = threads_.size();
    for (const int32_t tid : tids)
      if (seen_.insert(tid).second) RETURN_IF_ERROR(Seize(tid));
    if (threads_.size() == known) return absl::OkStatus();
    for (size_t i = known; i < threads_.size(); ++i)
      RETURN_IF_ERROR(AwaitStop(threads_[i], deadline_ns));
  }
}

absl::Status HeldThreads::Seize(int32_t tid) {
  const absl::Status seized = operations_.Seize(tid);
  if (seized.ok()) {
    threads_.push_back({.tid = tid});
    // Not found: it is exiting, which the wait will tell.
    const absl::Status interrupted = operations_.Interrupt(tid);
    return absl::IsNotFound(interrupted) ? absl::OkStatus() : interrupted;
  }
  if (absl::IsNotFound(seized)) return absl::OkStatus();
  const auto status = ReadThreadStatus(pid_, tid);
  if (!status.ok() || IsDead(*status)) return absl::OkStatus();
  RETURN_IF_ERROR(CheckInjectable(*status, pid_));
  return absl::PermissionDeniedError(absl::StrCat(seized.message(),
                                                  " (the agent needs CAP_SYS_PTRACE; see "
                                                  "/proc/sys/kernel/yama/ptrace_scope)"));
}

absl::Status HeldThreads::AwaitStop(HeldThread& thread, int64_t deadline_ns) {
  while (thread.state == HeldThread::State::kRunning) {
    const int64_t now_ns = SystemClock().MonotonicNs();
    const auto status = operations_.Wait(thread.tid, std::min(deadline_ns, now_ns + kScanNs));
    if (!status.ok()) {
      // Neither exited nor ours: it executed a program and has the leader's number now.
      thread.state = HeldThread::State::kGone;
      released_ = false;
    } else if (status->has_value()) {
      RETURN_IF_ERROR(RecordStatus(thread, **status));
    } else {
      // A leader that exits before its threads is a zombie which no wait reports.
      const auto facts = ReadThreadStatus(pid_, thread.tid);
      if (!facts.ok() || IsDead(*facts)) {
        thread.state = HeldThread::State::kGone;
        released_ = false;
      } else if (now_ns >= deadline_ns) {
        return absl::DeadlineExceededError(absl::StrCat(
            "thread ", thread.tid, " does not stop (state ", std::string(1, facts->state), ")"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status HeldThreads::RecordStatus(HeldThread& thread, int status) {
  if (Ended(status)) {
    thread.state = HeldThread::State::kGone;
    return absl::OkStatus();
  }
  const int signal = WSTOPSIG(status);
  if (EventOf(status) == PTRACE_EVENT_STOP) {
    thread.state = HeldThread::State::kStopped;
    if (signal != SIGTRAP) thread.group_stop_signal = signal;
    return absl::OkStatus();
  }
  // The thread is about to take a signal: it gets it, and our interrupt stops it right after.
  const absl::Status passed = operations_.Continue(thread.tid, signal);
  return absl::IsNotFound(passed) ? absl::OkStatus() : passed;
}

absl::Status HeldThreads::CheckGroupStop() const {
  for (const HeldThread& thread : threads_)
    if (thread.group_stop_signal != 0)
      return absl::FailedPreconditionError(
          absl::StrCat("process ", pid_, ": the process is stopped (SIG",
                       sigabbrev_np(thread.group_stop_signal), ")"));
  return absl::OkStatus();
}

absl::Status HeldThreads::ReadRegisters() {
  for (HeldThread& thread : threads_) {
    ASSIGN_OR_RETURN(thread.registers, operations_.Registers(thread.tid));
    Repair(thread);
  }
  for (const HeldThread& thread : threads_)
    if (thread.registers.cs != kCodeSegment64)
      return absl::FailedPreconditionError(
          absl::StrCat("process ", pid_, ": thread ", thread.tid, " runs 32-bit code"));
  return absl::OkStatus();
}

bool HeldThreads::WillHandleSignal(int32_t tid) {
  if (!operations_.HasQueuedSignals(tid)) return false;  // spares a slow file
  const auto status = ReadThreadStatus(pid_, tid);
  return !status.ok() || SignalWillBeHandled(*status);
}

// At once, not at the release: from here on also the death of the tracer leaves a wait that starts again.
void HeldThreads::Repair(HeldThread& thread) {
  if (!LooksLikeFalseEintr(thread.registers) || WillHandleSignal(thread.tid)) return;
  user_regs_struct restarted = thread.registers;
  restarted.rax = static_cast<uint64_t>(kRestartNoIntr);
  if (!operations_.SetRegisters(thread.tid, restarted).ok()) return;
  thread.registers = restarted;
  thread.repaired = true;
  ++repaired_;
}

void HeldThreads::Release() {
  for (HeldThread& thread : threads_) Release(thread);
  threads_.clear();
}

// Never waited for, because another thread ended the attempt: it may have stopped by now, perhaps to take a signal.
void HeldThreads::ReleaseUnseen(HeldThread& thread) {
  const auto status = operations_.Wait(thread.tid, 0);
  if (!status.ok() || !status->has_value()) {
    released_ = false;
  } else if (Ended(**status)) {
    thread.state = HeldThread::State::kGone;
  } else {
    thread.state = HeldThread::State::kStopped;
    const int signal = WSTOPSIG(**status);
    if (EventOf(**status) != PTRACE_EVENT_STOP && signal != kCallStop)
      thread.deliver_signal = signal;
  }
}

void HeldThreads::Release(HeldThread& thread) {
  constexpr uint64_t kEintr = static_cast<uint64_t>(-4);
  if (thread.state == HeldThread::State::kGone) return;
  if (thread.state == HeldThread::State::kRunning) ReleaseUnseen(thread);
  if (thread.state != HeldThread::State::kStopped) return;
  if (thread.repaired && WillHandleSignal(thread.tid)) {
    // It came while the thread stood still, and interrupts the wait after all.
    thread.registers.rax = kEintr;
    (void)operations_.SetRegisters(thread.tid, thread.registers);
  }
  if (operations_.Detach(thread.tid, thread.deliver_signal).ok()) return;
  // Killed meanwhile: reap what is ours to reap, or the process's parent waits for us.
  const auto status = operations_.Wait(thread.tid, 0);
  if (!status.ok() || !status->has_value() || !Ended(**status)) released_ = false;
}

absl::StatusOr<const std::vector<MapEntry>*> HeldThreads::Maps() {
  if (!maps_.has_value()) {
    ASSIGN_OR_RETURN(maps_, ProcFs().Maps(pid_));
  }
  return &*maps_;
}

}  // namespace perfd::agent
