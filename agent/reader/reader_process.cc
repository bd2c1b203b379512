#include "agent/reader/reader_process.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/spawn/helper_host.h"
#include "agent/spawn/helper_process.h"
#include "core/base/clock.h"
#include "core/base/frame.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int kOwnEndMs = 100;  // a reader that closed its socket is about to end by itself

// By program and user: what a reader inherits was asked for its own user.
thread_local std::map<std::pair<std::string, uint32_t>, std::unique_ptr<HelperHost>> hosts;
constexpr size_t kMostHosts = 8;

absl::StatusOr<pid_t> SpawnFromHost(const std::string& program, uint32_t uid,
                                    const std::vector<std::string>& arguments, int socket) {
  if (hosts.size() >= kMostHosts && !hosts.contains({program, uid})) hosts.clear();
  auto& host = hosts[{program, uid}];
  if (host == nullptr) {
    ASSIGN_OR_RETURN(host, HelperHost::Start("reader", program));
  }
  auto pid = host->Spawn(arguments, socket);
  if (!pid.ok()) host.reset();
  return pid;
}

}  // namespace

int64_t DeadlineAfter(absl::Duration timeout) {
  return SystemClock().MonotonicNs() + absl::ToInt64Nanoseconds(timeout);
}

absl::StatusOr<std::unique_ptr<ReaderProcess>> ReaderProcess::Start(
    const std::string& program, uint32_t uid, const std::vector<std::string>& arguments,
    const std::string& subject) {
  auto hosted =
      StartBy([&](int socket) { return SpawnFromHost(program, uid, arguments, socket); }, subject);
  if (hosted.ok()) return hosted;
  return StartAlone(program, arguments, subject);
}

absl::StatusOr<std::unique_ptr<ReaderProcess>> ReaderProcess::StartAlone(
    const std::string& program, const std::vector<std::string>& arguments,
    const std::string& subject) {
  return StartBy(
      [&](int socket) {
        return StartHelper({"reader", program, arguments}, socket);
      },
      subject);
}

absl::StatusOr<std::unique_ptr<ReaderProcess>> ReaderProcess::StartBy(HelperStart start,
                                                                      std::string subject) {
  ASSIGN_OR_RETURN(Helper reader, StartWithSocket("reader", start));
  return std::unique_ptr<ReaderProcess>(
      new ReaderProcess(reader.pid, std::move(reader.socket), std::move(subject)));
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

// After a failure of the conversation the reader is not used again. Nor are the hosts: a file that harms its reader does not
// meet the same addresses twice.
absl::Status ReaderProcess::Fail(const absl::Status& status) {
  hosts.clear();
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

}  // namespace perfd::agent
