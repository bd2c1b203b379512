// daemon/service/doors/unix_door.h - the Unix socket: accepts, asks the kernel who it is, hands the connection on.
//
// Shape    Open binds and listens; Serve starts the accepting thread; Stop, or the destructor, ends it and removes the socket:
//          whoever comes later is told at once that nobody listens.
// Errors   Open: kAlreadyExists when another daemon answers on the socket; kPermissionDenied for the folder.
// Threads  own thread: daemon/sockets/acceptor.h.
// Safety   the socket is open to everyone (0666) in a folder only its owner may change (0755): who may do what is
//          decided by the peer's uid, never by what it says.
// Source   unix(7) SO_PEERCRED.
#ifndef DAEMON_SERVICE_DOORS_UNIX_DOOR_H_
#define DAEMON_SERVICE_DOORS_UNIX_DOOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"
#include "core/model/node.h"
#include "daemon/sockets/acceptor.h"

namespace perfd::daemon {

class UnixDoor {
 public:
  using OnConnection = std::function<void(UniqueFd connection, uint32_t uid)>;

  static absl::StatusOr<std::unique_ptr<UnixDoor>> Open(const std::string& path);
  ~UnixDoor();

  absl::Status Serve(OnConnection on_connection);
  void Stop();
  // For `doctor`.
  std::vector<DoctorCheck> Checks() const;

 private:
  UnixDoor(std::string path, UniqueFd listener)
      : path_(std::move(path)), listener_(std::move(listener)) {}

  const std::string path_;
  UniqueFd listener_;
  Acceptor acceptor_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_SERVICE_DOORS_UNIX_DOOR_H_
