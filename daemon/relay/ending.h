// daemon/relay/ending.h - when a connection that comes to its end is over: what is to be said last may take a while.
//
// Threads  thread-compatible.
#ifndef DAEMON_RELAY_ENDING_H_
#define DAEMON_RELAY_ENDING_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/base/clock.h"

namespace perfd::daemon {

class Ending {
 public:
  void Begin(int64_t now_ns) {
    if (!by_ns_.has_value()) by_ns_ = now_ns + kWithinNs;
  }
  // So much came that is for nobody any more.
  void Drop(size_t bytes) { dropped_ += bytes; }
  bool has_begun() const { return by_ns_.has_value(); }
  bool is_over(int64_t now_ns) const {
    return dropped_ > kMostDropped || (by_ns_.has_value() && now_ns >= *by_ns_);
  }

 private:
  static constexpr int64_t kWithinNs = 2 * kNsPerSecond;
  static constexpr size_t kMostDropped = 1 << 20;

  std::optional<int64_t> by_ns_;
  size_t dropped_ = 0;
};

}  // namespace perfd::daemon

#endif  // DAEMON_RELAY_ENDING_H_
