#include "agent/reader/reader_server.h"

#include <memory>
#include <utility>
#include <vector>

#include "agent/binary/module_reader.h"
#include "agent/reader/confine.h"
#include "agent/reader/module_open.h"
#include "core/base/frame.h"
#include "core/base/status_macros.h"
#include "core/wire/check/check.h"
#include "core/wire/wire.h"

namespace perfd::agent {
namespace {

absl::StatusOr<std::unique_ptr<ModuleReader>> OpenConfined(const ReaderArguments& arguments) {
  ASSIGN_OR_RETURN(OpenedModule module, OpenModule(arguments.file));
  // To find the debug file, the module's headers and those of the candidates must be read.
  const ConfineLimits limits{.memory_bytes = arguments.memory_limit_bytes};
  RETURN_IF_ERROR(ConfineForOpening(limits));
  UniqueFd debug = OpenDebugFile(module, arguments.file.path);
  module.root.Reset();
  RETURN_IF_ERROR(Confine(limits));
  return ModuleReader::Open(std::move(module.main), std::move(debug), arguments.detail);
}

absl::Status Reply(int socket, const v1::ReaderReply& reply) {
  absl::Status sent = SendFrame(socket, reply.SerializeAsString(), kNoDeadline);
  if (sent.code() != absl::StatusCode::kResourceExhausted) return sent;
  v1::ReaderReply refusal;
  refusal.set_error_code(static_cast<int>(sent.code()));
  refusal.set_error("answer too large: ask for fewer addresses");
  return SendFrame(socket, refusal.SerializeAsString(), kNoDeadline);
}

absl::Status ReplyError(int socket, const absl::Status& status) {
  v1::ReaderReply reply;
  reply.set_error_code(static_cast<int>(status.code()));
  reply.set_error(wire::CleanText(status.message()));
  return Reply(socket, reply);
}

}  // namespace

absl::Status Serve(int socket, const ReaderArguments& arguments) {
  auto reader = OpenConfined(arguments);
  if (!reader.ok()) return ReplyError(socket, reader.status());
  RETURN_IF_ERROR(Reply(socket, wire::ToProto((*reader)->facts())));
  while (true) {
    ASSIGN_OR_RETURN(const std::string message, ReceiveFrame(socket, kNoDeadline));
    v1::ReaderRequest request;
    if (!request.ParseFromString(message))
      return absl::InvalidArgumentError("reader: request does not parse");
    if (!request.compared_bytes().empty()) {
      v1::ReaderReply reply;
      reply.set_same_bytes(
          (*reader)->HasBytes(request.compared_address(), request.compared_bytes()));
      RETURN_IF_ERROR(Reply(socket, reply));
      continue;
    }
    const std::vector<ElfAddress> addresses(request.addresses().begin(), request.addresses().end());
    RETURN_IF_ERROR(Reply(socket, wire::ToProto((*reader)->FunctionsAt(addresses))));
  }
}

}  // namespace perfd::agent
