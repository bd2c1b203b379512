// daemon/service/doors/tcp_door.h - the TCP port: accepts, says from where, hands the connection on. Who it is, TLS proves later.
//
// Shape    Open binds and listens; Serve starts the accepting thread; Stop, or the destructor, ends it and the port: whoever comes later
//          is told at once that nobody listens.
// Errors   Open: daemon/sockets/tcp_listener.h.
// Threads  own thread: daemon/sockets/acceptor.h.
#ifndef DAEMON_SERVICE_DOORS_TCP_DOOR_H_
#define DAEMON_SERVICE_DOORS_TCP_DOOR_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"
#include "daemon/sockets/acceptor.h"
#include "daemon/sockets/tcp_listener.h"

namespace perfd::daemon {

class TcpDoor {
 public:
  // NetworkOfPeer of it; not empty.
  using OnConnection = std::function<void(UniqueFd connection, const std::string& network)>;

  static absl::StatusOr<std::unique_ptr<TcpDoor>> Open(const std::string& address);

  absl::Status Serve(OnConnection on_connection);
  void Stop() {
    acceptor_.Stop();
    listener_.sockets.clear();
  }
  const std::string& address() const { return listener_.address; }

 private:
  explicit TcpDoor(TcpListener listener) : listener_(std::move(listener)) {}

  TcpListener listener_;
  Acceptor acceptor_;  // its thread uses the listener
};

}  // namespace perfd::daemon

#endif  // DAEMON_SERVICE_DOORS_TCP_DOOR_H_
