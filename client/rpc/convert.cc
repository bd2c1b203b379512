#include "client/rpc/convert.h"

#include <utility>

#include "core/base/status_macros.h"
#include "core/wire/check/check.h"
#include "core/wire/node_wire.h"
#include "core/wire/variant_wire.h"
#include "core/wire/wire.h"

namespace perfd::client {
std::vector<NodeStatus> NodesFromProto(const v1::ListNodesResponse& response) {
  std::vector<NodeStatus> nodes;
  for (const v1::NodeStatus& node : response.nodes()) nodes.push_back(wire::FromProto(node));
  return nodes;
}

absl::StatusOr<std::vector<DoctorReport>> DoctorFromProto(const v1::DoctorResponse& response) {
  std::vector<DoctorReport> reports;
  for (const v1::DoctorReport& from : response.reports()) {
    DoctorReport report{.place = from.place(), .checks = {}, .uid = from.uid()};
    // A perfd of before does not say: then nobody's words are taken for the daemon's.
    if (from.source() != v1::DOCTOR_SOURCE_UNSPECIFIED) {
      ASSIGN_OR_RETURN(report.source,
                       wire::ModelEnum(from.source(), DoctorSource::kUserAgent, "doctor.source"));
    }
    ASSIGN_OR_RETURN(report.checks, wire::FromProto(from.checks()));
    reports.push_back(std::move(report));
  }
  return reports;
}

absl::StatusOr<std::vector<AuditEntry>> AuditFromProto(const v1::ListAuditResponse& response) {
  RETURN_IF_ERROR(
      wire::CheckCount(response.entries_size(), wire::kMaxAuditEntries, "audit.entries"));
  std::vector<AuditEntry> entries;
  for (const v1::AuditEntry& from : response.entries()) {
    ASSIGN_OR_RETURN(AuditEntry entry, wire::FromProto(from));
    entries.push_back(std::move(entry));
  }
  return entries;
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

}  // namespace perfd::client
