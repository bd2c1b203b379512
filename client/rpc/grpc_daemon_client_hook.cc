// What schedulers ask of perfd.
#include <grpcpp/client_context.h>

#include "absl/time/clock.h"
#include "client/rpc/grpc_daemon_client.h"
#include "client/rpc/rpc_status.h"
#include "core/base/status_macros.h"
#include "core/wire/hook_wire.h"

namespace perfd::client {
namespace {

constexpr absl::Duration kQuick = absl::Seconds(10);

using Ask = grpc::Status (v1::Hook::Stub::*)(grpc::ClientContext* context,
                                             const v1::HookRequest& request,
                                             v1::HookResponse* response);

}  // namespace

absl::StatusOr<HookAnswer> GrpcDaemonClient::HookBegin(const HookJob& job, absl::Duration timeout) {
  return CallHook(job, timeout, true);
}

absl::StatusOr<HookAnswer> GrpcDaemonClient::HookEnd(const HookJob& job, absl::Duration timeout) {
  return CallHook(job, timeout, false);
}

absl::StatusOr<HookAnswer> GrpcDaemonClient::CallHook(const HookJob& job, absl::Duration timeout,
                                                      bool begins) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  v1::HookRequest request;
  *request.mutable_job() = wire::ToProto(job);
  v1::HookResponse response;
  const Ask ask = begins ? static_cast<Ask>(&v1::Hook::Stub::Begin) : &v1::Hook::Stub::End;
  RETURN_IF_ERROR(
      FromRpc((hook_stub_.get()->*ask)(&context, request, &response), options_.address));
  return wire::FromProto(response);
}

absl::StatusOr<HookOverview> GrpcDaemonClient::HookList(int limit) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kQuick));
  v1::HookListRequest request;
  request.set_limit(limit);
  v1::HookListResponse response;
  RETURN_IF_ERROR(FromRpc(hook_stub_->List(&context, request, &response), options_.address));
  return wire::FromProto(response);
}

}  // namespace perfd::client
