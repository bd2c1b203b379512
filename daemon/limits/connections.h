// daemon/limits/connections.h - how many connections each user has to the Unix socket now, and each address over TCP.
//
// Shape    Add takes the place before gRPC has the descriptor; the place is given back when either side has ended it.
// Limits   Limit::kConnectionsPerUser, kConnectionsPerAddress, kTcpConnections; of the process's descriptors
//          a half is not for TCP, and a quarter is for perfd itself, for root, perfd's own and the agents' user.
// Errors   Add: kResourceExhausted, by the limit; kUnavailable for want of descriptors.
// Threads  thread-safe. Own thread: perfd-hangup. It has a second descriptor of each connection, as gRPC does not tell of its end; an
//          end by gRPC is a shutdown(2), which both see.
#ifndef DAEMON_LIMITS_CONNECTIONS_H_
#define DAEMON_LIMITS_CONNECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
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

  // kept: the descriptors that are kept are for this user.
  absl::Status Add(int connection, uint32_t uid, bool kept);
  absl::Status Add(int connection, const std::string& network);  // over TCP
  size_t Of(uint32_t uid) const;

 private:
  struct Connection {
    UniqueFd fd{};
    std::optional<uint32_t> uid{};  // none: over TCP
    Share own{};
    Share tcp{};
    size_t descriptors = 0;  // of the process
  };

  absl::Status Watch(int connection, Connection added, size_t most_descriptors);
  void Forget(const Connection& ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();

  Limits& limits_;
  UniqueFd hangups_;  // epoll
  UniqueFd wake_;     // eventfd: end
  mutable Mutex mutex_;
  std::map<int, Connection> connections_ ABSL_GUARDED_BY(mutex_);  // by their descriptor
  std::map<uint32_t, size_t> of_user_ ABSL_GUARDED_BY(mutex_);
  size_t descriptors_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_LIMITS_CONNECTIONS_H_
