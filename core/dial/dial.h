// core/dial/dial.h - how agent and client reach the daemon: a Unix socket whose owner is checked, or mutual TLS.
//
// Shape    Dial("unix:/run/perfd/perfd.sock", options) or Dial("host:port", options with certificates) -> channel.
//          A unix channel is one connection: dial again when it breaks.
// Errors   kUnavailable (nobody listens; says how to start perfd), kPermissionDenied (the socket, or its server's uid),
//          kInvalidArgument (address, certificates that are missing, unreadable or not valid now, a key that others may read).
// Threads  thread-safe. Waits at most the timeout.
// Source   unix(7) SO_PEERCRED; gRPC server_posix.h.
#ifndef CORE_DIAL_DIAL_H_
#define CORE_DIAL_DIAL_H_

#include <grpcpp/channel.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace perfd {

struct DialOptions {
  std::string address;  // "unix:PATH", "/PATH" or "HOST:PORT"
  std::string tls_ca;   // PEM files; all three with HOST:PORT
  std::string tls_cert;
  std::string tls_key;
  std::optional<uint32_t> daemon_uid;  // accepted server besides root and ourselves
  absl::Duration timeout = absl::Seconds(5);
  // Accept the system's own socket, which only root can have given to the user that serves it. For clients: an agent
  // obeys, and so trusts no one that it was not told of.
  bool trust_system_socket = false;
};

absl::StatusOr<std::shared_ptr<grpc::Channel>> Dial(const DialOptions& options);

// The same status with its canonical code, and what OpenSSL does not say of a certificate that it refuses.
absl::Status ToAbsl(const grpc::Status& status);

}  // namespace perfd

#endif  // CORE_DIAL_DIAL_H_
