// daemon/service/agent_codec.h - the agent stream's messages to values and back.
//
// Errors   kInvalidArgument, naming what is wrong: an agent of another build, or no agent at all.
// Threads  thread-safe (pure).
#ifndef DAEMON_SERVICE_AGENT_CODEC_H_
#define DAEMON_SERVICE_AGENT_CODEC_H_

#include "absl/status/statusor.h"
#include "daemon/control/decisions.h"
#include "daemon/control/events.h"
#include "daemon/ingest/ingest.h"
#include "daemon/service/identity.h"
#include "perfd/v1/agent.pb.h"

namespace perfd::daemon {

// Also checks that `peer` may be this agent and that both speak the same protocol (kFailedPrecondition).
absl::StatusOr<AgentFacts> ToFacts(const v1::Register& message, const Peer& peer);
absl::StatusOr<SessionUpdate> ToUpdate(const v1::SessionUpdate& message);
absl::StatusOr<IncomingWindow> ToWindow(const v1::Window& message);

v1::DaemonMessage ToMessage(const StartNode& command);
v1::DaemonMessage ToMessage(const StopNode& command);
v1::DaemonMessage ToMessage(const MeasureNode& command);
v1::DaemonMessage ToMessage(const ChargeNode& command);

}  // namespace perfd::daemon

#endif  // DAEMON_SERVICE_AGENT_CODEC_H_
