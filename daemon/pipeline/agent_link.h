// daemon/pipeline/agent_link.h - what the daemon can say to one connected agent.
//
// Threads  thread-safe; never blocks. After the stream has ended, calls do nothing.
#ifndef DAEMON_PIPELINE_AGENT_LINK_H_
#define DAEMON_PIPELINE_AGENT_LINK_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "daemon/control/decisions.h"

namespace perfd::daemon {

class AgentLink {
 public:
  virtual ~AgentLink() = default;
  // First of all: the agent is accepted, and this is the highest sequence of its stream that is stored.
  virtual void Welcome(uint64_t stored_sequence) = 0;
  virtual void Start(const StartNode& command) = 0;
  virtual void Stop(const StopNode& command) = 0;
  virtual void Measure(const MeasureNode& command) = 0;
  // Asks for the node's clock at job time `job_ns`, and tells what is known of it.
  virtual void AskClock(int64_t /*job_ns*/, const std::optional<ClockReading>& /*known*/) {}
  virtual void Charge(const ChargeNode& /*command*/) {}
  virtual void AskDoctor(uint64_t request_id) = 0;
  // Ends the stream with this status.
  virtual void Close(const absl::Status& reason) = 0;
};

}  // namespace perfd::daemon

#endif  // DAEMON_PIPELINE_AGENT_LINK_H_
