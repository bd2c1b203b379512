#include "agent/procfs/guarded/guarded_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/procfs/guarded/file_server.h"
#include "core/base/frame.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int kKilledEndMs = 50;

int64_t DeadlineAfter(absl::Duration patience) {
  return SystemClock().MonotonicNs() + absl::ToInt64Nanoseconds(patience);
}

absl::Status SilentError(int32_t pid) {
  return absl::UnavailableError(
      absl::StrCat("process ", pid,
                   " does not answer (its address space is locked, or the file system of its "
                   "program hangs); it is left out for now"));
}

}  // namespace

GuardedFiles::GuardedFiles(StartServer start, const Clock& clock, std::string root)
    : GuardedFiles(std::move(start), clock, std::move(root), Patience()) {}

GuardedFiles::GuardedFiles(StartServer start, const Clock& clock, std::string root,
                           Patience patience)
    : start_(std::move(start)), clock_(clock), procfs_(std::move(root)), patience_(patience) {}

GuardedFiles::~GuardedFiles() {
  for (Helper& helper : idle_) KillHelper(helper.pid, kKilledEndMs);
  for (const Silence& silence : silences_) {
    if (silence.helper != 0) KillHelper(silence.helper, kKilledEndMs);
  }
}

// Of a process that may be dumped its effective user, of others root.
uint32_t GuardedFiles::OwnerOf(int32_t pid) const {
  struct stat entry {};
  const std::string path = absl::StrCat(procfs_.root(), "/", pid);
  return ::stat(path.c_str(), &entry) == 0 ? entry.st_uid : 0;
}

void GuardedFiles::ForgetSilences() {
  const int64_t now_ns = clock_.MonotonicNs();
  std::erase_if(silences_, [now_ns](Silence& silence) {
    if (silence.helper != 0 && KillHelper(silence.helper, 0)) silence.helper = 0;
    return silence.helper == 0 && now_ns >= silence.until_ns;
  });
}

absl::Status GuardedFiles::CheckAnswers(int32_t pid) {
  MutexLock lock(&mutex_);
  if (silences_.empty()) return absl::OkStatus();
  ForgetSilences();
  const uint64_t start_ticks = procfs_.StartTicks(pid).value_or(0);
  const uint32_t owner = OwnerOf(pid);
  int others = 0;
  for (const Silence& silence : silences_) {
    if (silence.pid == pid && silence.start_ticks == start_ticks) return SilentError(pid);
    others += silence.owner == owner ? 1 : 0;
  }
  if (others < kMostOfUser) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("process ", pid, " is not looked into now: ", others,
                                             " other processes of its user do not answer"));
}

void GuardedFiles::RecordSilence(int32_t pid, Helper helper, bool patient) {
  Silence silence{.pid = pid};
  silence.patient = patient;
  silence.start_ticks = procfs_.StartTicks(pid).value_or(0);
  silence.owner = OwnerOf(pid);
  silence.until_ns = clock_.MonotonicNs() + absl::ToInt64Nanoseconds(kForget);
  if (!KillHelper(helper.pid, kKilledEndMs)) silence.helper = helper.pid;
  LogWarning("process {} of uid {} does not answer; it is left out for {} s", pid, silence.owner,
             absl::ToInt64Seconds(kForget));
  MutexLock lock(&mutex_);
  silences_.push_back(silence);
}

absl::StatusOr<Helper> GuardedFiles::StartHelperInTime() const {
  ASSIGN_OR_RETURN(Helper helper, StartWithSocket("reader of /proc", start_));
  const absl::StatusOr<std::string> ready =
      ReceiveFrame(helper.socket.get(), DeadlineAfter(patience_.start));
  if (ready.ok()) return helper;
  KillHelper(helper.pid, kKilledEndMs);
  return ready.status();
}

absl::StatusOr<Helper> GuardedFiles::TakeHelper(bool* is_new) {
  {
    MutexLock lock(&mutex_);
    *is_new = idle_.empty();
    if (!idle_.empty()) {
      Helper helper = std::move(idle_.back());
      idle_.pop_back();
      return helper;
    }
  }
  absl::StatusOr<Helper> helper = StartHelperInTime();
  if (helper.ok()) return helper;
  return absl::UnavailableError(
      absl::StrCat("the reader of /proc does not start: ", helper.status().message()));
}

void GuardedFiles::Retain(Helper helper) {
  {
    MutexLock lock(&mutex_);
    if (idle_.size() < kMostIdle) {
      idle_.push_back(std::move(helper));
      return;
    }
  }
  KillHelper(helper.pid, kKilledEndMs);
}

absl::Duration GuardedFiles::PatienceNow() {
  MutexLock lock(&mutex_);
  // Those that had less time do not shorten it for the next, nor do helpers that never end.
  const int64_t now_ns = clock_.MonotonicNs();
  const auto patient = std::count_if(
      silences_.begin(), silences_.end(),
      [now_ns](const Silence& silence) { return silence.patient && now_ns < silence.until_ns; });
  return patient < kMostOfUser ? patience_.read : std::min(patience_.read, patience_.further);
}

absl::StatusOr<std::string> GuardedFiles::Ask(const Helper& helper, const SlowRead& read,
                                              absl::Duration patience) const {
  const int64_t deadline_ns = DeadlineAfter(patience);
  RETURN_IF_ERROR(SendFrame(helper.socket.get(), EncodeRead(read), deadline_ns));
  return ReceiveFrame(helper.socket.get(), deadline_ns);
}

// A helper that stayed may have been killed meanwhile: by whoever, it says nothing about this process.
absl::StatusOr<std::string> GuardedFiles::Read(int32_t pid, const SlowRead& read) {
  RETURN_IF_ERROR(CheckAnswers(pid));
  for (bool is_new = false; true;) {
    ASSIGN_OR_RETURN(Helper helper, TakeHelper(&is_new));
    const absl::Duration patience = PatienceNow();
    const absl::StatusOr<std::string> message = Ask(helper, read, patience);
    if (message.ok()) {
      Retain(std::move(helper));
      return DecodeAnswer(*message);
    }
    if (absl::IsDeadlineExceeded(message.status())) {
      RecordSilence(pid, std::move(helper), patience == patience_.read);
      return SilentError(pid);
    }
    KillHelper(helper.pid, kKilledEndMs);
    if (is_new)
      return absl::UnavailableError(absl::StrCat("the reader of /proc died over process ", pid));
  }
}

}  // namespace perfd::agent
