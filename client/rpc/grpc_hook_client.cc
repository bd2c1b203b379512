#include "client/rpc/grpc_hook_client.h"

#include <grpcpp/client_context.h>

#include <utility>

#include "absl/time/clock.h"
#include "client/rpc/rpc_status.h"
#include "core/base/status_macros.h"
#include "core/wire/hook_wire.h"

namespace perfd::client {
namespace {

constexpr absl::Duration kQuick = absl::Seconds(10);

}  // namespace

GrpcHookClient::GrpcHookClient(const std::shared_ptr<grpc::Channel>& channel, std::string address)
    : address_(std::move(address)), stub_(v1::Hook::NewStub(channel)) {}

absl::StatusOr<HookAnswer> GrpcHookClient::Begin(const HookJob& job, absl::Duration timeout) {
  return Call(&v1::Hook::Stub::Begin, job, timeout);
}

absl::StatusOr<HookAnswer> GrpcHookClient::End(const HookJob& job, absl::Duration timeout) {
  return Call(&v1::Hook::Stub::End, job, timeout);
}

absl::StatusOr<HookAnswer> GrpcHookClient::Call(Ask ask, const HookJob& job,
                                                absl::Duration timeout) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  v1::HookRequest request;
  *request.mutable_job() = wire::ToProto(job);
  v1::HookResponse response;
  RETURN_IF_ERROR(FromRpc((stub_.get()->*ask)(&context, request, &response), address_));
  return wire::FromProto(response);
}

absl::StatusOr<HookOverview> GrpcHookClient::List(int limit) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kQuick));
  v1::HookListRequest request;
  request.set_limit(limit);
  v1::HookListResponse response;
  RETURN_IF_ERROR(FromRpc(stub_->List(&context, request, &response), address_));
  return wire::FromProto(response);
}

}  // namespace perfd::client
