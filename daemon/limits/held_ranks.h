// daemon/limits/held_ranks.h - the ranks and threads of one profile on all its nodes, and its user's places for them.
//
// Shape    Update with what a node says; the most that it has said counts until the profile is over.
// Errors   kResourceExhausted, once: Limit::kRanksPerUser or kThreadsPerUser has no more.
// Bounds   the nodes of the profile.
// Threads  thread-compatible.
#ifndef DAEMON_LIMITS_HELD_RANKS_H_
#define DAEMON_LIMITS_HELD_RANKS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "core/model/identity.h"
#include "core/model/profile.h"
#include "daemon/limits/limits.h"

namespace perfd::daemon {

class HeldRanks {
 public:
  absl::Status Update(const NodeProgress& node, const Requester& who, Limits& limits);
  // What was there before perfd began, whatever the limits are now.
  void Restore(const ProfileStatus& status, Limits& limits);

 private:
  struct Count {
    int64_t ranks = 0;
    int64_t threads = 0;
  };

  std::map<std::string, Count> nodes_;
  Share ranks_;
  Share threads_;
  bool refused_ = false;
};

}  // namespace perfd::daemon

#endif  // DAEMON_LIMITS_HELD_RANKS_H_
