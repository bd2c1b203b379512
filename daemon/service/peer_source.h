// daemon/service/peer_source.h - how a handler learns who calls. gRPC does not say which accepted descriptor a call
// came through, so every Unix uid has a server of its own, whose services are built with that uid's source.
#ifndef DAEMON_SERVICE_PEER_SOURCE_H_
#define DAEMON_SERVICE_PEER_SOURCE_H_

#include <grpcpp/server_context.h>

#include <functional>

#include "absl/status/statusor.h"
#include "daemon/service/identity.h"

namespace perfd::daemon {

using PeerSource = std::function<absl::StatusOr<Peer>(const grpc::CallbackServerContext&)>;

}  // namespace perfd::daemon

#endif  // DAEMON_SERVICE_PEER_SOURCE_H_
