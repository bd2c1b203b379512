// core/wire/node_wire.h - nodes, their health and doctor's checks to protobuf messages and back.
//
// Shape    as in wire.h. Health and node are shown to people only: any number is a number.
// Errors   kInvalidArgument: too many checks.
// Threads  thread-safe (pure).
#ifndef CORE_WIRE_NODE_WIRE_H_
#define CORE_WIRE_NODE_WIRE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/model/node.h"
#include "perfd/v1/agent.pb.h"
#include "perfd/v1/profiler.pb.h"

namespace perfd::wire {

v1::Heartbeat ToProto(const AgentHealth& health);
AgentHealth FromProto(const v1::Heartbeat& beat);

v1::NodeStatus ToProto(const NodeStatus& node);
NodeStatus FromProto(const v1::NodeStatus& node);

// The checks of one place, appended to `out`.
using ProtoChecks = google::protobuf::RepeatedPtrField<v1::DoctorCheck>;
void ToProto(const std::vector<DoctorCheck>& checks, ProtoChecks& out);
absl::StatusOr<std::vector<DoctorCheck>> FromProto(const ProtoChecks& checks);

}  // namespace perfd::wire

#endif  // CORE_WIRE_NODE_WIRE_H_
