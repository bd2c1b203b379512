// daemon/relay/due_connections.h - which connections are to be moved now, by their numbers.
//
// Shape    Drain gives those that are ready, and at each tick those whose time may be over.
// Threads  thread-compatible.
#ifndef DAEMON_RELAY_DUE_CONNECTIONS_H_
#define DAEMON_RELAY_DUE_CONNECTIONS_H_

#include <cstdint>
#include <set>
#include <utility>

#include "core/base/clock.h"

namespace perfd::daemon {

class DueConnections {
 public:
  static constexpr int kTickMs = 20;

  void SetReady(uint64_t number) { ready_.insert(number); }
  void SetTimed(uint64_t number, bool timed) {
    if (timed) timed_.insert(number);
    if (!timed) timed_.erase(number);
  }
  bool has_ready() const { return !ready_.empty(); }
  bool has_timed() const { return !timed_.empty(); }

  std::set<uint64_t> Drain(int64_t now_ns) {
    std::set<uint64_t> due = std::exchange(ready_, {});
    if (now_ns < tick_ns_) return due;
    tick_ns_ = now_ns + kTickMs * kNsPerSecond / 1000;
    due.insert(timed_.begin(), timed_.end());
    return due;
  }

 private:
  std::set<uint64_t> ready_;
  std::set<uint64_t> timed_;
  int64_t tick_ns_ = 0;
};

}  // namespace perfd::daemon

#endif  // DAEMON_RELAY_DUE_CONNECTIONS_H_
