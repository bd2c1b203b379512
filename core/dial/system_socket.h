// core/dial/system_socket.h - is the server behind a socket one that root has put there?
//
// Shape    the socket's folder belongs to the server, and nobody but root could have made that folder: its parent is
//          root's and nobody else may change it. So is /run/perfd of a perfd that runs as its own user
//          (systemd.exec(5) RuntimeDirectory=).
// Threads  thread-safe.
#ifndef CORE_DIAL_SYSTEM_SOCKET_H_
#define CORE_DIAL_SYSTEM_SOCKET_H_

#include <cstdint>
#include <string>

namespace perfd {

inline constexpr char kSystemSocket[] = "/run/perfd/perfd.sock";

bool PlacedByRoot(const std::string& socket_path, uint32_t server_uid);

}  // namespace perfd

#endif  // CORE_DIAL_SYSTEM_SOCKET_H_
