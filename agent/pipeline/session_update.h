// agent/pipeline/session_update.h - what a session tells the outside: its phase, its ranks, its troubles, its windows.
//
// Threads  SessionOutput is called from the session's and the resolver's threads; implementations are thread-safe.
#ifndef AGENT_PIPELINE_SESSION_UPDATE_H_
#define AGENT_PIPELINE_SESSION_UPDATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/identity.h"
#include "core/model/profile.h"
#include "core/model/window.h"

namespace perfd::agent {

// What the daemon asked for.
struct SessionRequest {
  std::string profile_id;
  ProfileSpec spec;
  Requester requester;
  int64_t remaining_ns = 0;  // sampling time that is left
  int64_t wait_ns = 0;  // follows a job: ranks may appear within so long; 0: those that are there
  // Processes of the target come and go: the end of one is no trouble.
  bool ranks_change() const { return wait_ns > 0 || spec.target.tree; }
  int64_t clock_ahead_ns = 0;  // of this node's wall clock, before the daemon's; 0: they agree
};

struct SessionUpdate {
  std::string profile_id;
  NodeProgress::Phase phase = NodeProgress::Phase::kDiscovering;
  std::vector<RankInfo> ranks;
  int32_t threads = 0;
  std::vector<Notice> notices;  // since the last news
  uint64_t last_sequence = 0;   // in kFinished and kFailed: of the last window; 0: none
  bool first_sample = false;
};

class SessionOutput {
 public:
  virtual ~SessionOutput() = default;
  virtual void OnUpdate(const SessionUpdate& update) = 0;
  // Takes a window for delivery and gives it its sequence. kResourceExhausted: no room, the window is lost (counted
  // by the caller in the next one).
  virtual absl::StatusOr<uint64_t> OnWindow(Window window) = 0;
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_SESSION_UPDATE_H_
