#include "daemon/service/doors/tcp_door.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <vector>

#include "core/base/status_macros.h"

namespace perfd::daemon {

absl::StatusOr<std::unique_ptr<TcpDoor>> TcpDoor::Open(const std::string& address) {
  ASSIGN_OR_RETURN(TcpListener listener,
                   ListenTcp(address, {"agents and clients", "--listen-tcp"}));
  return std::unique_ptr<TcpDoor>(new TcpDoor(std::move(listener)));
}

absl::Status TcpDoor::Serve(OnConnection on_connection) {
  std::vector<int> sockets;
  for (const UniqueFd& socket : listener_.sockets) sockets.push_back(socket.get());
  return acceptor_.Start(
      std::move(sockets), [on_connection = std::move(on_connection)](UniqueFd connection) {
        const int on = 1;  // small frames must not wait for an acknowledgement
        ::setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        const std::string network = NetworkOfPeer(connection.get());
        if (!network.empty()) on_connection(std::move(connection), network);
      });
}

}  // namespace perfd::daemon
