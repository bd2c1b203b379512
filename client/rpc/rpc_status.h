// client/rpc/rpc_status.h - a gRPC status as an absl::Status that tells the user what to do.
#ifndef CLIENT_RPC_RPC_STATUS_H_
#define CLIENT_RPC_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace perfd::client {

absl::Status FromRpc(const grpc::Status& status, const std::string& address);

// kFailedPrecondition when the daemon speaks another protocol.
absl::Status CheckProtocol(const std::string& daemon_version, int daemon_protocol);

}  // namespace perfd::client

#endif  // CLIENT_RPC_RPC_STATUS_H_
