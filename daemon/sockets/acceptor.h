// daemon/sockets/acceptor.h - a thread that accepts connections and hands them on.
//
// Shape    Start once; Stop, or the destructor, ends the thread. The sockets stay the caller's.
// Errors   Start: kResourceExhausted. Without descriptors it waits a moment and says so in the log.
// Threads  own thread: perfd-accept, which calls on_connection.
#ifndef DAEMON_SOCKETS_ACCEPTOR_H_
#define DAEMON_SOCKETS_ACCEPTOR_H_

#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "core/base/unique_fd.h"

namespace perfd::daemon {

class Acceptor {
 public:
  using OnConnection = std::function<void(UniqueFd connection)>;  // not blocking

  Acceptor() = default;
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  ~Acceptor() { Stop(); }

  absl::Status Start(std::vector<int> listeners, OnConnection on_connection);
  void Stop();

 private:
  void Run(const std::vector<int>& listeners, const OnConnection& on_connection);

  UniqueFd wake_;  // eventfd: end
  std::thread thread_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_SOCKETS_ACCEPTOR_H_
