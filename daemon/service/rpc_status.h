// daemon/service/rpc_status.h - a status on the wire: same code, same text (bounded: it travels in HTTP headers).
//
// Shape    NotTaken: of a call that a worker does not take, or gives up: the daemon stops, or is busy.
#ifndef DAEMON_SERVICE_RPC_STATUS_H_
#define DAEMON_SERVICE_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/wire/own_words.h"
#include "daemon/ingest/worker.h"

namespace perfd::daemon {

inline grpc::Status ToRpc(const absl::Status& status) {
  constexpr size_t kMaxText = 4096;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message().substr(0, kMaxText)),
                      status.ok() ? "" : wire::kOwnWords);
}

inline grpc::Status NotTaken(const Worker& worker, absl::string_view busy) {
  return ToRpc(worker.closed() ? absl::UnavailableError("perfd is stopping")
                               : absl::ResourceExhaustedError(busy));
}

}  // namespace perfd::daemon

#endif  // DAEMON_SERVICE_RPC_STATUS_H_
