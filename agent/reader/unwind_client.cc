#include "agent/reader/unwind_client.h"

#include "absl/strings/str_cat.h"
#include "agent/reader/arguments.h"
#include "core/base/status_macros.h"
#include "core/wire/wire.h"

namespace perfd::agent {
namespace {

absl::StatusOr<CallPath> ReceivePath(ReaderProcess& process, int64_t deadline_ns) {
  ASSIGN_OR_RETURN(const std::string message, process.Receive(deadline_ns));
  v1::UnwindReply reply;
  if (!reply.ParseFromString(message))
    return absl::InternalError("reader: its answer does not parse");
  return wire::FromProto(reply);
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnwindClient>> UnwindClient::Start(
    const UnwindProcess& target, const std::vector<CodeMapping>& mappings,
    const ReaderOptions& options) {
  const int64_t deadline_ns = DeadlineAfter(options.start_timeout);
  const UnwindArguments arguments{target, options.memory_limit_bytes};
  ASSIGN_OR_RETURN(auto process,
                   ReaderProcess::StartAlone(options.reader_binary, FormatArguments(arguments),
                                             absl::StrCat("the stacks of process ", target.pid)));
  RETURN_IF_ERROR(process->Send(wire::ToProto(mappings).SerializeAsString(), deadline_ns));
  RETURN_IF_ERROR(ReceivePath(*process, deadline_ns).status());
  return std::unique_ptr<UnwindClient>(new UnwindClient(std::move(process)));
}

absl::StatusOr<CallPath> UnwindClient::Unwind(const StackCopy& copy, absl::Duration timeout) {
  const int64_t deadline_ns = DeadlineAfter(timeout);
  RETURN_IF_ERROR(process_->Send(wire::ToProto(copy).SerializeAsString(), deadline_ns));
  return ReceivePath(*process_, deadline_ns);
}

}  // namespace perfd::agent
