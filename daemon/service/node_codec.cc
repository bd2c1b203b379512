#include "daemon/service/node_codec.h"

namespace perfd {

v1::NodeStatus ToProto(const NodeStatus& node) {
  v1::NodeStatus message;
  message.set_node(node.node);
  message.set_connected(node.connected);
  message.set_version(node.version);
  message.set_user_mode(node.user_mode);
  message.set_uid(node.uid);
  message.set_cpus(node.cpus);
  message.set_kernel(node.kernel);
  message.set_sampling_event(node.sampling_event);
  message.set_last_seen_unix_ns(node.last_seen_unix_ns);
  v1::Heartbeat& beat = *message.mutable_heartbeat();
  beat.set_resident_bytes(node.health.resident_bytes);
  beat.set_cpu_ns(node.health.cpu_ns);
  beat.set_spooled_windows(node.health.spooled_windows);
  beat.set_spool_bytes(node.health.spool_bytes);
  beat.set_sessions(node.health.sessions);
  beat.mutable_dropped()->Add(node.health.dropped.begin(), node.health.dropped.end());
  return message;
}

v1::DoctorReport ToProto(const DoctorReport& report) {
  v1::DoctorReport message;
  message.set_place(report.place);
  for (const DoctorCheck& from : report.checks) {
    v1::DoctorCheck& check = *message.add_checks();
    check.set_name(from.name);
    check.set_ok(from.ok);
    check.set_optional(from.optional);
    check.set_found(from.found);
    check.set_fix(from.fix);
  }
  return message;
}

}  // namespace perfd
