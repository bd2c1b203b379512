#include "agent/attach/thread_status.h"

#include <signal.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/procfs/procfs.h"
#include "agent/procfs/read_file.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr size_t kMaxStatusBytes = 65536;

constexpr uint64_t SignalBit(int signal) {
  return uint64_t{1} << (signal - 1);
}
// Without a handler these do nothing. SIGCONT has its effect when it is sent.
constexpr uint64_t kIgnoredByDefault =
    SignalBit(SIGCHLD) | SignalBit(SIGURG) | SignalBit(SIGWINCH) | SignalBit(SIGCONT);

uint64_t Hexadecimal(absl::string_view text) {
  uint64_t value = 0;
  return absl::SimpleHexAtoi(text, &value) ? value : 0;
}

int32_t Decimal(absl::string_view text) {
  int32_t value = 0;
  return absl::SimpleAtoi(text, &value) ? value : 0;
}

void SetField(absl::string_view name, absl::string_view value, ThreadStatus& status) {
  if (name == "State" && !value.empty()) status.state = value[0];
  if (name == "TracerPid") status.tracer_pid = Decimal(value);
  if (name == "Seccomp") status.seccomp_mode = Decimal(value);
  if (name == "x86_Thread_features") status.shadow_stack = absl::StrContains(value, "shstk");
  if (name == "SigPnd" || name == "ShdPnd") status.pending |= Hexadecimal(value);
  if (name == "SigBlk") status.blocked = Hexadecimal(value);
  if (name == "SigIgn") status.ignored = Hexadecimal(value);
  if (name == "SigCgt") status.caught = Hexadecimal(value);
}

}  // namespace

absl::StatusOr<ThreadStatus> ParseThreadStatus(absl::string_view text) {
  ThreadStatus status;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos) continue;
    SetField(line.substr(0, colon), absl::StripAsciiWhitespace(line.substr(colon + 1)), status);
  }
  if (status.state == '?') return absl::InvalidArgumentError("thread status without a state");
  return status;
}

absl::StatusOr<ThreadStatus> ReadThreadStatus(int32_t pid, int32_t tid) {
  ASSIGN_OR_RETURN(
      const std::string text,
      ReadWholeFile(absl::StrCat("/proc/", pid, "/task/", tid, "/status"), kMaxStatusBytes));
  return ParseThreadStatus(text);
}

absl::StatusOr<ProcessIdentity> ReadIdentity(int32_t pid) {
  ASSIGN_OR_RETURN(const ProcessStamp stamp, ProcFs().Stamp(pid));
  return ProcessIdentity{stamp.start_ticks, stamp.stack_start};
}

bool SignalWillBeHandled(const ThreadStatus& status) {
  const uint64_t without_effect = status.ignored | (kIgnoredByDefault & ~status.caught);
  return (status.pending & ~status.blocked & ~without_effect) != 0;
}

bool IsDead(const ThreadStatus& status) {
  return status.state == 'Z' || status.state == 'X' || status.state == 'x';
}

bool IsStopped(const ThreadStatus& status) {
  return status.state == 'T';
}

absl::Status CheckInjectable(const ThreadStatus& status, int32_t pid) {
  const std::string who = absl::StrCat("process ", pid, ": ");
  if (status.tracer_pid != 0)
    return absl::FailedPreconditionError(
        absl::StrCat(who, "traced by process ", status.tracer_pid, " (a debugger?)"));
  if (IsStopped(status))
    return absl::FailedPreconditionError(absl::StrCat(who, "the process is stopped (SIGSTOP)"));
  if (status.seccomp_mode != 0)
    return absl::FailedPreconditionError(
        absl::StrCat(who, "a seccomp filter could kill it for a call of ours"));
  if (status.shadow_stack)
    return absl::FailedPreconditionError(
        absl::StrCat(who, "a shadow stack (CET) forbids returning through a frame of ours"));
  return absl::OkStatus();
}

}  // namespace perfd::agent
