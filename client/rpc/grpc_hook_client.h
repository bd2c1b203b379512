// client/rpc/grpc_hook_client.h - HookClient over gRPC.
#ifndef CLIENT_RPC_GRPC_HOOK_CLIENT_H_
#define CLIENT_RPC_GRPC_HOOK_CLIENT_H_

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "client/rpc/hook_client.h"
#include "perfd/v1/hook.grpc.pb.h"

namespace perfd::client {

class GrpcHookClient final : public HookClient {
 public:
  // `address` is what errors name.
  GrpcHookClient(const std::shared_ptr<grpc::Channel>& channel, std::string address);

  absl::StatusOr<HookAnswer> Begin(const HookJob& job, absl::Duration timeout) override;
  absl::StatusOr<HookAnswer> End(const HookJob& job, absl::Duration timeout) override;
  absl::StatusOr<HookOverview> List(int limit) override;

 private:
  using Ask = grpc::Status (v1::Hook::Stub::*)(grpc::ClientContext* context,
                                               const v1::HookRequest& request,
                                               v1::HookResponse* response);
  absl::StatusOr<HookAnswer> Call(Ask ask, const HookJob& job, absl::Duration timeout);

  std::string address_;
  std::unique_ptr<v1::Hook::Stub> stub_;
};

}  // namespace perfd::client

#endif  // CLIENT_RPC_GRPC_HOOK_CLIENT_H_
