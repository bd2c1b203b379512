// client/rpc/backoff.h - how long a watcher keeps trying after the daemon went away.
//
// Units    monotonic ns, given by the caller.
#ifndef CLIENT_RPC_BACKOFF_H_
#define CLIENT_RPC_BACKOFF_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace perfd::client {

class ReconnectPolicy {
 public:
  // The daemon was heard: the 30 s begin anew.
  void Heard() { silent_since_ns_.reset(); }

  // The wait before the next attempt, or nothing when 30 s have passed since the daemon was lost.
  std::optional<absl::Duration> NextWait(int64_t now_ns);

 private:
  std::optional<int64_t> silent_since_ns_;
};

}  // namespace perfd::client

#endif  // CLIENT_RPC_BACKOFF_H_
