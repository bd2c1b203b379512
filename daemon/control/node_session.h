// daemon/control/node_session.h - one node's part in one profile.
//
// Shape    over when it failed, or when it reported its end and every window up to its last one is stored.
#ifndef DAEMON_CONTROL_NODE_SESSION_H_
#define DAEMON_CONTROL_NODE_SESSION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/control/events.h"

namespace perfd::daemon {

struct NodeSession {
  NodeProgress progress;
  std::string stream_id;  // of the agent's present spool; empty until it is known
  bool connected = false;
  bool lost = false;             // failed because the agent stayed away
  bool ended = false;            // reported FINISHED or FAILED
  bool ended_badly = false;      // ... FAILED
  bool ended_before = false;     // had reported its end before the daemon restarted
  bool job_over = false;         // the job it follows has ended on this node
  uint64_t last_sequence = 0;    // its last window, when `ended`
  uint64_t stored_sequence = 0;  // highest stored or refused sequence of stream_id
  int64_t asked_ns = 0;          // monotonic: when the last command was sent
  int64_t away_since_ns = 0;     // monotonic: when the stream broke
  std::string gap_stream;        // the stream of the next two
  std::optional<uint64_t>
      first_missing;            // its gaps when this profile began, or the daemon came back
  uint64_t missing = 0;         // gaps that appeared since
  uint64_t missing_before = 0;  // the same of its earlier streams
  bool keeps_leases = false;
  std::optional<ClockReading> clock;     // of the node, as far as it is known
  bool leased = false;                   // the orders of this profile give it a lease
  std::optional<int64_t> wait_until_ns;  // monotonic: of a node that joined later, its own

  bool Drained() const { return ended && (last_sequence == 0 || stored_sequence >= last_sequence); }
  bool Failed() const { return progress.phase == NodeProgress::Phase::kFailed; }
  bool Over() const { return Drained() || (Failed() && !ended); }
  bool FoundNothing() const {
    return ended && !ended_badly && progress.ranks == 0 && progress.windows == 0 &&
           last_sequence == 0;
  }

  void Connect(const AgentFacts& facts);
  void Disconnect(int64_t now_ns);
  void Apply(const SessionUpdate& update);
  void Count(const StoredWindow& window);
  void Pass(const RefusedWindow& window);
  uint64_t Missing() const { return missing_before + missing; }

 private:
  void BeginGaps(const std::string& stream, uint64_t gaps);
};

}  // namespace perfd::daemon

#endif  // DAEMON_CONTROL_NODE_SESSION_H_
