// Nodes, their health, and what `doctor` finds there.
#include "core/wire/node_wire.h"

#include "core/base/status_macros.h"
#include "core/wire/check/check.h"

namespace perfd::wire {
namespace {

constexpr size_t kMaxReason = 1024;  // perfd keeps it for every node

}  // namespace

v1::Heartbeat ToProto(const AgentHealth& health) {
  v1::Heartbeat out;
  out.set_resident_bytes(health.resident_bytes);
  out.set_cpu_ns(health.cpu_ns);
  out.set_spooled_windows(health.spooled_windows);
  out.set_spool_bytes(health.spool_bytes);
  out.set_sessions(health.sessions);
  out.set_set_aside_windows(health.set_aside_windows);
  out.set_ring_bytes(health.ring_bytes);
  out.set_ring_limit_bytes(health.ring_limit_bytes);
  out.set_can_inject(health.can_inject);
  out.set_inject_reason(CleanText(health.inject_reason));
  return out;
}

AgentHealth FromProto(const v1::Heartbeat& beat) {
  AgentHealth out;
  out.resident_bytes = beat.resident_bytes();
  out.cpu_ns = beat.cpu_ns();
  out.spooled_windows = beat.spooled_windows();
  out.spool_bytes = beat.spool_bytes();
  out.sessions = beat.sessions();
  out.set_aside_windows = beat.set_aside_windows();
  out.ring_bytes = beat.ring_bytes();
  out.ring_limit_bytes = beat.ring_limit_bytes();
  out.can_inject = beat.can_inject();
  out.inject_reason = CleanText(beat.inject_reason().substr(0, kMaxReason));
  return out;
}

v1::NodeStatus ToProto(const NodeStatus& node) {
  v1::NodeStatus out;
  out.set_node(CleanText(node.node));
  out.set_connected(node.connected);
  out.set_version(CleanText(node.version));
  out.set_user_mode(node.user_mode);
  out.set_replayed(node.replayed);
  out.set_uid(node.uid);
  out.set_cpus(node.cpus);
  out.set_kernel(CleanText(node.kernel));
  out.set_sampling_event(CleanText(node.sampling_event));
  out.set_last_seen_unix_ns(node.last_seen_unix_ns);
  *out.mutable_heartbeat() = ToProto(node.health);
  return out;
}

NodeStatus FromProto(const v1::NodeStatus& node) {
  NodeStatus out;
  out.node = node.node();
  out.connected = node.connected();
  out.version = node.version();
  out.user_mode = node.user_mode();
  out.replayed = node.replayed();
  out.uid = node.uid();
  out.cpus = node.cpus();
  out.kernel = node.kernel();
  out.sampling_event = node.sampling_event();
  out.last_seen_unix_ns = node.last_seen_unix_ns();
  out.health = FromProto(node.heartbeat());
  return out;
}

void ToProto(const std::vector<DoctorCheck>& checks, ProtoChecks& out) {
  for (const DoctorCheck& check : checks) {
    v1::DoctorCheck& to = *out.Add();
    to.set_name(CleanText(check.name, kMaxDoctorTextBytes));
    to.set_ok(check.ok);
    to.set_optional(check.optional);
    to.set_found(CleanText(check.found, kMaxDoctorTextBytes));
    to.set_fix(CleanText(check.fix, kMaxDoctorTextBytes));
  }
}

absl::StatusOr<std::vector<DoctorCheck>> FromProto(const ProtoChecks& checks) {
  RETURN_IF_ERROR(CheckCount(checks.size(), kMaxDoctorChecks, "doctor.checks"));
  std::vector<DoctorCheck> out;
  for (const v1::DoctorCheck& check : checks) {
    for (const std::string* text : {&check.name(), &check.found(), &check.fix()})
      RETURN_IF_ERROR(CheckText(*text, "doctor.checks", kMaxDoctorTextBytes));
    out.push_back({check.name(), check.ok(), check.optional(), check.found(), check.fix()});
  }
  return out;
}

}  // namespace perfd::wire
