// daemon/service/tls_files.h - the certificates of the TCP door, checked before they are used.
//
// Errors   kInvalidArgument: a file is not given, cannot be read, or the key is readable by others; the text names
//          deploy/make-certs.sh.
#ifndef DAEMON_SERVICE_TLS_FILES_H_
#define DAEMON_SERVICE_TLS_FILES_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/status/statusor.h"
#include "daemon/service/grpc_host.h"

namespace perfd {

// Clients must show a certificate of the same CA.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ReadServerCredentials(
    const TlsOptions& options);

}  // namespace perfd

#endif  // DAEMON_SERVICE_TLS_FILES_H_
