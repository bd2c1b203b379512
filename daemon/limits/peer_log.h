// daemon/limits/peer_log.h - lines of the log that peers cause: one a second of each peer, with how many were left out.
//
// Shape    Next(whose) -> to be written now, with how many of theirs were left out; nothing: this one is left out, too.
// Bounds   kMostPeers at a time; whom there is no room for share one line a second. Of whom nothing came for a minute
//          is forgotten when room is needed.
// Threads  thread-safe.
#ifndef DAEMON_LIMITS_PEER_LOG_H_
#define DAEMON_LIMITS_PEER_LOG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "core/base/log.h"
#include "core/base/mutex.h"

namespace perfd::daemon {

class PeerLog {
 public:
  static constexpr size_t kMostPeers = 4096;

  // now_ns: monotonic. Of everybody together for whom there is no room: whose = "".
  std::optional<uint64_t> Next(const std::string& whose, int64_t now_ns);

 private:
  struct Line {
    RareLog log;
    int64_t asked_ns = 0;  // the last time
  };

  Mutex mutex_;
  std::map<std::string, Line> lines_ ABSL_GUARDED_BY(mutex_);
};

// " (3 more since the last such line)"; empty for none.
std::string LeftOutText(uint64_t left_out);

}  // namespace perfd::daemon

#endif  // DAEMON_LIMITS_PEER_LOG_H_
