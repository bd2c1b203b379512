// daemon/sockets/tcp_listener.h - the TCP sockets of one door, and from where somebody came in by them.
//
// Shape    ListenTcp("HOST:PORT"): HOST is a name or an address, IPv6 in brackets; port 0: any free one. A name with several addresses
//          is listened on at all that this host has.
// Errors   kInvalidArgument: no HOST:PORT; kUnavailable: taken, or not ours. Both name the option.
// Source   getaddrinfo(3), tcp(7). Without SO_REUSEPORT: two daemons on one port would share its connections unseen.
#ifndef DAEMON_SOCKETS_TCP_LISTENER_H_
#define DAEMON_SOCKETS_TCP_LISTENER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/unique_fd.h"

namespace perfd::daemon {

struct TcpListener {
  std::vector<UniqueFd> sockets;  // not blocking
  std::string address;            // as asked for, with its real port
};

// For messages: "metrics and reports", "--metrics-listen".
struct TcpPurpose {
  absl::string_view what;
  absl::string_view option;
};

absl::StatusOr<TcpListener> ListenTcp(const std::string& address, const TcpPurpose& purpose);

// Of whom a connection is, as far as an address tells: one of IPv4, or the 64 bits of IPv6 that one host may have all of. Empty: it
// is over.
std::string NetworkOfPeer(int connection);

}  // namespace perfd::daemon

#endif  // DAEMON_SOCKETS_TCP_LISTENER_H_
