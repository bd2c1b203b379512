#include "agent/reader/reader_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/reader/arguments.h"
#include "core/base/status_macros.h"
#include "core/wire/wire.h"

namespace perfd::agent {
namespace {

constexpr size_t kMaxAddresses = 65536;  // Source: proto/perfd/v1/reader.proto, ReaderRequest

absl::StatusOr<v1::ReaderReply> ReceiveReply(ReaderProcess& process, int64_t deadline_ns) {
  ASSIGN_OR_RETURN(const std::string message, process.Receive(deadline_ns));
  v1::ReaderReply reply;
  if (!reply.ParseFromString(message))
    return absl::InternalError("reader: its answer does not parse");
  return reply;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReaderClient>> ReaderClient::Start(const ModuleFile& file,
                                                                  const ReaderOptions& options,
                                                                  ModuleDetail detail) {
  const int64_t deadline_ns = DeadlineAfter(options.start_timeout);
  const ReaderArguments arguments{file, options.memory_limit_bytes, detail};
  ASSIGN_OR_RETURN(auto process, ReaderProcess::Start(options.reader_binary, file.uid,
                                                      FormatArguments(arguments), file.path));
  std::unique_ptr<ReaderClient> client(new ReaderClient(std::move(process)));
  ASSIGN_OR_RETURN(const v1::ReaderReply reply, ReceiveReply(*client->process_, deadline_ns));
  ASSIGN_OR_RETURN(client->facts_, wire::ModuleFactsFromProto(reply));
  return client;
}

absl::StatusOr<CodeFacts> ReaderClient::Lookup(const std::vector<ElfAddress>& addresses,
                                               absl::Duration timeout) {
  if (addresses.size() > kMaxAddresses)
    return absl::InvalidArgumentError(
        absl::StrCat(addresses.size(), " addresses: at most ", kMaxAddresses, " per request"));
  const int64_t deadline_ns = DeadlineAfter(timeout);
  v1::ReaderRequest request;
  for (ElfAddress address : addresses) request.add_addresses(address.value());
  RETURN_IF_ERROR(process_->Send(request.SerializeAsString(), deadline_ns));
  ASSIGN_OR_RETURN(const v1::ReaderReply reply, ReceiveReply(*process_, deadline_ns));
  return wire::CodeFactsFromProto(reply);
}

absl::StatusOr<bool> ReaderClient::HasBytes(ElfAddress address, absl::string_view bytes,
                                            absl::Duration timeout) {
  if (bytes.empty() || bytes.size() > kMaxAddresses)
    return absl::InvalidArgumentError(
        absl::StrCat(bytes.size(), " bytes: 1 to ", kMaxAddresses, " per request"));
  const int64_t deadline_ns = DeadlineAfter(timeout);
  v1::ReaderRequest request;
  request.set_compared_address(address.value());
  request.set_compared_bytes(std::string(bytes));
  RETURN_IF_ERROR(process_->Send(request.SerializeAsString(), deadline_ns));
  ASSIGN_OR_RETURN(const v1::ReaderReply reply, ReceiveReply(*process_, deadline_ns));
  RETURN_IF_ERROR(wire::CodeFactsFromProto(reply).status());  // its error, if it has one
  return reply.same_bytes();
}

}  // namespace perfd::agent
