#include "agent/reader/reader_process.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "agent/spawn/helper_host.h"
#include "agent/spawn/helper_process.h"
#include "core/base/clock.h"
#include "core/base/frame.h"
#include "core/base/status_macros.h"

namespace perfd {
namespace {

constexpr int kOwnEndMs = 100;  // a reader that closed its socket is about to end by itself

absl::StatusOr<pid_t> SpawnAlone(const std::string& program,
                                 const std::vector<std::string>& arguments, int socket) {
  return StartHelper({"reader", program, arguments}, socket);
}

// A host that fails is replaced at the next call.
absl::StatusOr<pid_t> SpawnFromHost(const std::string& program,
                                    const std::vector<std::string>& arguments, int socket) {
  thread_local std::map<std::string, std::unique_ptr<HelperHost>> hosts;  // by program
  auto& host = hosts[program];
  if (host == nullptr) {
    ASSIGN_OR_RETURN(host, HelperHost::Start("reader", program));
  }
  auto pid = host->Spawn(arguments, socket);
  if (pid.ok()) return pid;
  host.reset();
  return SpawnAlone(program, arguments, socket);
}

}  // namespace

int64_t DeadlineAfter(absl::Duration timeout) {
  return SystemClock().MonotonicNs() + absl::ToInt64Nanoseconds(timeout);
}

absl::StatusOr<std::unique_ptr<ReaderProcess>> ReaderProcess::Start(
    const std::string& program, const std::vector<std::string>& arguments, std::string subject) {
  return StartBy(SpawnFromHost, program, arguments, std::move(subject));
}

absl::StatusOr<std::unique_ptr<ReaderProcess>> ReaderProcess::StartAlone(
    const std::string& program, const std::vector<std::string>& arguments, std::string subject) {
  return StartBy(SpawnAlone, program, arguments, std::move(subject));
}

absl::StatusOr<std::unique_ptr<ReaderProcess>> ReaderProcess::StartBy(
    Spawn spawn, const std::string& program, const std::vector<std::string>& arguments,
    std::string subject) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return absl::ResourceExhaustedError(absl::StrCat("reader socket: ", strerror(errno)));
  UniqueFd own(ends[0]);
  const UniqueFd theirs(ends[1]);
  ASSIGN_OR_RETURN(const pid_t pid, spawn(program, arguments, theirs.get()));
  return std::unique_ptr<ReaderProcess>(new ReaderProcess(pid, std::move(own), std::move(subject)));
}

ReaderProcess::~ReaderProcess() {
  End();
}

std::string ReaderProcess::End() {
  socket_.Reset();
  return pid_ > 0 ? EndHelper(std::exchange(pid_, 0), kOwnEndMs) : "ended before";
}

absl::Status ReaderProcess::Gone() const {
  return absl::FailedPreconditionError(absl::StrCat("reader of ", subject_, " is gone"));
}

// After a failure of the conversation the reader is not used again.
absl::Status ReaderProcess::Fail(const absl::Status& status) {
  const std::string end = End();
  if (absl::IsUnavailable(status))
    return absl::InternalError(absl::StrCat("reader of ", subject_, " died: ", end));
  return absl::Status(status.code(), absl::StrCat(subject_, ": ", status.message()));
}

absl::Status ReaderProcess::Send(absl::string_view message, int64_t deadline_ns) {
  if (pid_ == 0) return Gone();
  const absl::Status sent = SendFrame(socket_.get(), message, deadline_ns);
  return sent.ok() ? sent : Fail(sent);
}

absl::StatusOr<std::string> ReaderProcess::Receive(int64_t deadline_ns) {
  if (pid_ == 0) return Gone();
  auto message = ReceiveFrame(socket_.get(), deadline_ns);
  if (!message.ok()) return Fail(message.status());
  return message;
}

uint64_t ReaderProcess::CpuNs() const {
  return pid_ == 0 ? 0 : HelperCpuNs(pid_);
}

}  // namespace perfd
