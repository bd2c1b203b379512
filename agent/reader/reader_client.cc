#include "agent/reader/reader_client.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/reader/arguments.h"
#include "agent/reader/frame.h"
#include "agent/reader/spawn.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/wire/wire.h"

namespace perfd {
namespace {

constexpr size_t kMaxAddresses = 65536;  // Source: proto/perfd/v1/reader.proto, ReaderRequest

int64_t DeadlineAfter(absl::Duration timeout) {
  return SystemClock().MonotonicNs() + absl::ToInt64Nanoseconds(timeout);
}

absl::StatusOr<v1::ReaderReply> ReceiveReply(int socket, int64_t deadline_ns) {
  ASSIGN_OR_RETURN(const std::string message, ReceiveFrame(socket, deadline_ns));
  v1::ReaderReply reply;
  if (!reply.ParseFromString(message))
    return absl::InternalError("reader: its answer does not parse");
  return reply;
}

}  // namespace

ReaderClient::~ReaderClient() {
  End();
}

std::string ReaderClient::End() {
  socket_.Reset();
  return pid_ > 0 ? EndReader(std::exchange(pid_, 0)) : "ended before";
}

// After a failure of the conversation the reader is not used again.
absl::Status ReaderClient::Fail(const absl::Status& status) {
  const std::string end = End();
  if (absl::IsUnavailable(status))
    return absl::InternalError(absl::StrCat("reader of ", path_, " died: ", end));
  return absl::Status(status.code(), absl::StrCat(path_, ": ", status.message()));
}

absl::StatusOr<std::unique_ptr<ReaderClient>> ReaderClient::Start(const ModuleFile& file,
                                                                  const ReaderOptions& options) {
  const int64_t deadline_ns = DeadlineAfter(options.start_timeout);
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return absl::ResourceExhaustedError(absl::StrCat("reader socket: ", strerror(errno)));
  UniqueFd own(ends[0]);
  UniqueFd theirs(ends[1]);
  const ReaderArguments arguments{file, options.memory_limit_bytes};
  ASSIGN_OR_RETURN(const pid_t pid,
                   StartReader(options.reader_binary, FormatArguments(arguments), theirs.get()));
  theirs.Reset();
  std::unique_ptr<ReaderClient> client(new ReaderClient(pid, std::move(own)));
  client->path_ = file.path;
  const auto reply = ReceiveReply(client->socket_.get(), deadline_ns);
  if (!reply.ok()) return client->Fail(reply.status());
  ASSIGN_OR_RETURN(client->facts_, wire::ModuleFactsFromProto(*reply));
  return client;
}

absl::StatusOr<CodeFacts> ReaderClient::Lookup(const std::vector<uint64_t>& addresses,
                                               absl::Duration timeout) {
  if (pid_ == 0)
    return absl::FailedPreconditionError(absl::StrCat("reader of ", path_, " is gone"));
  if (addresses.size() > kMaxAddresses)
    return absl::InvalidArgumentError(
        absl::StrCat(addresses.size(), " addresses: at most ", kMaxAddresses, " per request"));
  const int64_t deadline_ns = DeadlineAfter(timeout);
  v1::ReaderRequest request;
  request.mutable_addresses()->Add(addresses.begin(), addresses.end());
  if (const absl::Status sent = SendFrame(socket_.get(), request.SerializeAsString(), deadline_ns);
      !sent.ok())
    return Fail(sent);
  const auto reply = ReceiveReply(socket_.get(), deadline_ns);
  if (!reply.ok()) return Fail(reply.status());
  return wire::CodeFactsFromProto(*reply);
}

}  // namespace perfd
