// client/rpc/convert.h - the messages that only clients see, as model values.
#ifndef CLIENT_RPC_CONVERT_H_
#define CLIENT_RPC_CONVERT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/rpc/daemon_client.h"
#include "perfd/v1/profiler.pb.h"

namespace perfd::client {

std::vector<NodeStatus> NodesFromProto(const v1::ListNodesResponse& response);
absl::StatusOr<std::vector<DoctorReport>> DoctorFromProto(const v1::DoctorResponse& response);
absl::StatusOr<std::vector<AuditEntry>> AuditFromProto(const v1::ListAuditResponse& response);
absl::StatusOr<WatchEvent> WatchEventFromProto(const v1::WatchEvent& event);

}  // namespace perfd::client

#endif  // CLIENT_RPC_CONVERT_H_
