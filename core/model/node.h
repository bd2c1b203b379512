// core/model/node.h - what is known about a node with an agent, and what `doctor` found there.
#ifndef CORE_MODEL_NODE_H_
#define CORE_MODEL_NODE_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace perfd {

// The last heartbeat of an agent.
struct AgentHealth {
  uint64_t resident_bytes = 0;
  uint64_t cpu_ns = 0;  // since the agent started
  uint64_t spooled_windows = 0;
  uint64_t spool_bytes = 0;
  int32_t sessions = 0;
  uint64_t set_aside_windows = 0;  // since it started: damaged or unsendable, in no profile
  uint64_t ring_bytes = 0;         // of the sampled threads, in the kernel; in no other figure
  uint64_t ring_limit_bytes = 0;   // for all sessions together
  bool can_inject = false;         // loops of ranks can be altered there
  std::string inject_reason;       // why not; empty and not can_inject: the agent does not say

  bool operator==(const AgentHealth&) const = default;
};

struct NodeStatus {
  std::string node;
  bool connected = false;
  std::string version;
  bool user_mode = false;  // the agent runs as an ordinary user and serves only that user
  bool replayed = false;   // it shows a recording
  uint32_t uid = 0;
  int32_t cpus = 0;
  std::string kernel;
  std::string sampling_event;  // what `auto` chooses; empty: sampling is impossible
  int64_t last_seen_unix_ns = 0;
  AgentHealth health;

  bool operator==(const NodeStatus&) const = default;
};

struct DoctorCheck {
  std::string name;
  bool ok = false;
  bool optional = false;  // when not ok: something works less well, nothing fails
  std::string found;
  std::string fix;  // the line that repairs it; empty when ok

  bool operator==(const DoctorCheck&) const = default;
};

// Whose word a report of `doctor` is.
enum class DoctorSource {
  kDaemon,     // perfd's, or the client's own
  kNodeAgent,  // of the site
  kUserAgent,  // of a user, for that user's processes: the site's health does not hang on it
};

struct DoctorReport {
  std::string place;  // "perfd" or a node name
  std::vector<DoctorCheck> checks;
  DoctorSource source = DoctorSource::kNodeAgent;
  uint32_t uid = 0;  // of the user of kUserAgent

  bool operator==(const DoctorReport&) const = default;
};

// Nothing failed but what is optional.
inline bool Passes(const DoctorReport& report) {
  return std::all_of(report.checks.begin(), report.checks.end(),
                     [](const DoctorCheck& check) { return check.ok || check.optional; });
}

}  // namespace perfd

#endif  // CORE_MODEL_NODE_H_
