// daemon/http/http_listener.h - the TCP socket that HTTP comes in by.
//
// Shape    ListenHttp("HOST:PORT"): HOST is a name or an address, IPv6 in brackets; port 0: any free one.
// Errors   kInvalidArgument: no HOST:PORT; kUnavailable: taken, or not ours.
// Source   getaddrinfo(3), tcp(7). Without SO_REUSEPORT: two daemons on one port would share its connections unseen.
#ifndef DAEMON_HTTP_HTTP_LISTENER_H_
#define DAEMON_HTTP_HTTP_LISTENER_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace perfd::daemon {

struct HttpListener {
  UniqueFd socket;      // not blocking
  std::string address;  // with its real port
};

absl::StatusOr<HttpListener> ListenHttp(const std::string& address);

}  // namespace perfd::daemon

#endif  // DAEMON_HTTP_HTTP_LISTENER_H_
