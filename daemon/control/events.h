// daemon/control/events.h - what the session table is told: by agents, by people, by the store and by the clock.
//
// Units    Moment: one reading of all clocks; intervals use only the monotonic one.
#ifndef DAEMON_CONTROL_EVENTS_H_
#define DAEMON_CONTROL_EVENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/identity.h"
#include "core/model/pause_lease.h"
#include "core/model/profile.h"
#include "core/model/profile_spec.h"

namespace perfd::daemon {

struct Moment {
  int64_t monotonic_ns = 0;
  int64_t unix_ns = 0;
  int64_t job_ns = 0;  // core/model/pause_lease.h
};

// What agents of some versions can do.
struct AgentAbilities {
  bool pause_leases = false;   // keeps the lease of an order
  bool process_trees = false;  // takes targets with `tree`
  bool replayed = false;       // shows a recording: asked only by its name
};

// What an agent says about itself when it connects.
struct AgentFacts {
  std::string node;
  std::string version;
  std::string stream_id;
  std::string instance_id;
  std::string boot_id;
  bool user_mode = false;  // serves only profiles of `uid`
  uint32_t uid = 0;
  // Of the certificate that names the node: it speaks under no other name. None: over the Unix socket.
  std::optional<int64_t> certificate_expiry_seconds;  // since the epoch
  int32_t cpus = 0;
  std::string kernel;
  std::string sampling_event;                // empty: cannot sample
  bool can_inject = false;                   // heartbeats say why not
  std::vector<std::string> active_profiles;  // running or with unsent windows
  AgentAbilities abilities;
  // Set by the daemon:
  uint64_t stored_sequence = 0;  // highest sequence of its stream that is stored or was refused
  uint64_t stream_missing = 0;   // sequences of its stream that were never seen
  std::optional<ClockReading> clock;  // the best there is
};

// What a session on a node is doing now.
struct SessionUpdate {
  std::string profile_id;
  NodeProgress::Phase phase = NodeProgress::Phase::kAsked;
  int32_t ranks = 0;
  int32_t threads = 0;
  std::vector<Notice> notices;
  uint64_t last_sequence = 0;  // with kFinished and kFailed: the session's last window; 0: none
  bool first_sample = false;
};

// One window is in the store (and in the aggregate).
struct StoredWindow {
  std::string profile_id;
  std::string node;
  std::string stream_id;
  uint64_t sequence = 0;
  int64_t start_unix_ns = 0;
  int64_t duration_ns = 0;
  uint64_t samples = 0;
  uint64_t stream_missing = 0;  // sequences of the stream that were never seen, all profiles
  std::vector<LeasedPause> pauses = {};
};

// One window that will never be stored; the agent has been told to drop it.
struct RefusedWindow {
  std::string profile_id;
  std::string node;
  std::string stream_id;
  uint64_t sequence = 0;
  Notice notice;
};

// The job of a scheduler that a profile follows: its ranks are waited for so long, and the profile ends with it.
struct FollowedJob {
  std::string name;  // for people, "Slurm job 4711"
  int64_t wait_ns = 0;
  int64_t join_wait_ns = 0;  // on a node that joins later, when longer: the other may be over
};

struct SubmitRequest {
  ProfileSpec spec;
  Requester requester;
  std::string client_node;  // the node meant by `pids` without `node`
  std::vector<std::string> nodes =
      {};  // only these, as far as they are connected; empty: what the target says
  bool await_nodes =
      false;  // `nodes` that are not connected are taken too: they get the grace of those that left
  bool by_site = false;  // a scheduler asks, not the user
};

}  // namespace perfd::daemon

#endif  // DAEMON_CONTROL_EVENTS_H_
