// daemon/limits/connections.h - how many connections to the Unix socket each user has now.
//
// Shape    Add takes the user's place before gRPC has the descriptor; the place is given back when either side has ended it.
// Errors   Add: kResourceExhausted, by Limit::kConnectionsPerUser; kUnavailable for want of a descriptor.
// Threads  thread-safe. Own thread: perfd-hangup. It has a second descriptor of each connection, as gRPC does not tell of its end; an
//          end by gRPC is a shutdown(2), which both see.
#ifndef DAEMON_LIMITS_CONNECTIONS_H_
#define DAEMON_LIMITS_CONNECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "core/base/mutex.h"
#include "core/base/unique_fd.h"
#include "daemon/limits/limits.h"

namespace perfd::daemon {

class Connections {
 public:
  // `limits` outlives it.
  explicit Connections(Limits& limits);
  ~Connections();

  absl::Status Add(int connection, uint32_t uid);
  size_t Of(uint32_t uid) const;

 private:
  struct Connection {
    UniqueFd fd;
    uint32_t uid = 0;
    Share place;
  };

  void Run();

  Limits& limits_;
  UniqueFd hangups_;  // epoll
  UniqueFd wake_;     // eventfd: end
  mutable Mutex mutex_;
  std::map<int, Connection> connections_ ABSL_GUARDED_BY(mutex_);  // by their descriptor
  std::map<uint32_t, size_t> of_user_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_LIMITS_CONNECTIONS_H_
