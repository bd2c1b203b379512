// daemon/relay/call_pace.h - when each user's next call may begin.
//
// Shape    Next gives a call its time; those that come faster than the pace queue up, whichever connection they are on. Up to a second's
//          worth may come at once.
// Bounds   kMostUsers are known; who has not been here for a second is forgotten.
// Threads  thread-compatible.
// Source   ITU-T I.371, generic cell rate algorithm (virtual scheduling).
#ifndef DAEMON_RELAY_CALL_PACE_H_
#define DAEMON_RELAY_CALL_PACE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include "core/base/clock.h"
#include "daemon/limits/limits.h"

namespace perfd::daemon {

class CallPace {
 public:
  static constexpr size_t kMostUsers = 1024;  // and one for all others

  // Monotonic; `now_ns` when it may begin at once.
  int64_t Next(uint32_t uid, int64_t calls_per_minute, int64_t now_ns) {
    if (due_.size() >= kMostUsers)
      std::erase_if(due_, [now_ns](const auto& user) { return user.second <= now_ns; });
    // Who comes later shares a pace with all others who do.
    const uint32_t who = due_.size() < kMostUsers || due_.contains(uid) ? uid : kNobodyKnown;
    int64_t& due = due_[who];
    due = std::max(due, now_ns) + 60 * kNsPerSecond / std::max<int64_t>(calls_per_minute, 1);
    return std::max(now_ns, due - kNsPerSecond);
  }

 private:
  std::map<uint32_t, int64_t> due_;  // when all calls so far would have begun at the pace
};

}  // namespace perfd::daemon

#endif  // DAEMON_RELAY_CALL_PACE_H_
