#include "client/rpc/convert.h"

#include <algorithm>
#include <utility>

#include "core/base/status_macros.h"
#include "core/wire/wire.h"

namespace perfd {
namespace {

AgentHealth HealthFromProto(const v1::Heartbeat& beat) {
  AgentHealth health;
  health.resident_bytes = beat.resident_bytes();
  health.cpu_ns = beat.cpu_ns();
  health.spooled_windows = beat.spooled_windows();
  health.spool_bytes = beat.spool_bytes();
  health.sessions = beat.sessions();
  const int count = std::min(beat.dropped_size(), static_cast<int>(kDropReasonCount));
  for (int i = 0; i < count; ++i) health.dropped[static_cast<size_t>(i)] = beat.dropped(i);
  return health;
}

}  // namespace

std::vector<NodeStatus> NodesFromProto(const v1::ListNodesResponse& response) {
  std::vector<NodeStatus> nodes;
  for (const v1::NodeStatus& from : response.nodes()) {
    NodeStatus node;
    node.node = from.node();
    node.connected = from.connected();
    node.version = from.version();
    node.user_mode = from.user_mode();
    node.uid = from.uid();
    node.cpus = from.cpus();
    node.kernel = from.kernel();
    node.sampling_event = from.sampling_event();
    node.last_seen_unix_ns = from.last_seen_unix_ns();
    node.health = HealthFromProto(from.heartbeat());
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::vector<DoctorReport> DoctorFromProto(const v1::DoctorResponse& response) {
  std::vector<DoctorReport> reports;
  for (const v1::DoctorReport& from : response.reports()) {
    DoctorReport report{from.place(), {}};
    for (const v1::DoctorCheck& check : from.checks())
      report.checks.push_back(
          {check.name(), check.ok(), check.optional(), check.found(), check.fix()});
    reports.push_back(std::move(report));
  }
  return reports;
}

absl::StatusOr<WatchEvent> WatchEventFromProto(const v1::WatchEvent& event) {
  WatchEvent result;
  ASSIGN_OR_RETURN(result.status, wire::FromProto(event.status()));
  for (const v1::ReportRow& row : event.top_loops()) {
    ASSIGN_OR_RETURN(ReportRow loop, wire::FromProto(row));
    result.top_loops.push_back(std::move(loop));
  }
  return result;
}

}  // namespace perfd
