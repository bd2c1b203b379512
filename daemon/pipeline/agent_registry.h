// daemon/pipeline/agent_registry.h - the agents: who is connected, who was, and how they are.
//
// Shape    a connection has a number; only the present connection of a node may speak for it.
// Limits   Limit::kNodeNames, kNodeNamesPerUser; nodes not seen for a day are forgotten.
// Threads  thread-compatible: the pipeline's lock covers it.
#ifndef DAEMON_PIPELINE_AGENT_REGISTRY_H_
#define DAEMON_PIPELINE_AGENT_REGISTRY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/analysis/lease_windows.h"
#include "core/base/clock.h"
#include "core/model/node.h"
#include "daemon/control/events.h"
#include "daemon/limits/limits.h"
#include "daemon/pipeline/agent_link.h"

namespace perfd::daemon {

// What a node's name takes of the limits.
struct NamePlaces {
  Share own;  // of the user whose agent in user mode has it; else empty
  Share all;
};

class AgentRegistry {
 public:
  // `limits` outlives it.
  explicit AgentRegistry(Limits& limits) : limits_(limits) {}

  static constexpr int64_t kSilentNs = 20 * kNsPerSecond;  // heartbeats come every 5 s

  struct Entry {
    uint64_t connection = 0;  // 0: not connected
    AgentFacts facts;
    std::shared_ptr<AgentLink> link;  // shared with the stream, which may outlive the entry
    NodeStatus status;
    int64_t heard_ns = 0;  // monotonic: its last sign of life
    ClockExchange clock;   // also of its earlier connections, while the node was not booted anew
    int64_t clock_asked_ns = 0;  // job time; 0: no answer is awaited
    std::shared_ptr<Entry>
        own;  // of the node's agent, which is away, while a user's own has its name
    NamePlaces places;
  };

  // Returns the connection's number. Another live agent of that name is replaced when it is the same one come back
  // (same user and stream, or it has been silent for kSilentNs; of two that are no user's own the same user will do) or
  // when the new one outranks a user's own agent; else kAlreadyExists. Names are limited (Limit::kNodeNames, kNodeNamesPerUser); a
  // user's own agent leaves for a node's.
  absl::StatusOr<uint64_t> Connect(const AgentFacts& facts, std::shared_ptr<AgentLink> link,
                                   Moment now);
  // The node's name when this was its present connection, else empty.
  std::string Disconnect(uint64_t connection, int64_t now_unix_ns);
  // The entry this connection may speak for, or nullptr when it was replaced.
  Entry* Find(uint64_t connection);
  static void Heard(Entry& entry, Moment now);
  // True when no agent of another stream is known under this name: its windows may be of a node that was renamed.
  bool MayBeNameOf(const std::string& node, const std::string& stream_id) const;
  std::shared_ptr<AgentLink> Link(const std::string& node) const;
  const std::map<std::string, Entry>& entries() const { return entries_; }
  size_t connected() const { return by_connection_.size(); }
  void Forget(int64_t older_than_unix_ns);

 private:
  // Of those that are limited, for which AcquireName is asked: it may end a user's agent for a node's.
  bool TakesAName(const AgentFacts& next) const;
  absl::StatusOr<NamePlaces> AcquireName(const AgentFacts& next);

  Limits& limits_;
  std::map<std::string, Entry> entries_;  // by node
  std::map<uint64_t, std::string> by_connection_;
  uint64_t next_connection_ = 1;
};

}  // namespace perfd::daemon

#endif  // DAEMON_PIPELINE_AGENT_REGISTRY_H_
