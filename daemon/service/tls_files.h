// daemon/service/tls_files.h - the certificates of the TCP door, checked before they are used, and renewed under way.
//
// Shape    Read, then Credentials() for one server, which this must outlive. After Renew the next handshake uses what the
//          files hold now; connections that stand are not touched.
// Errors   kInvalidArgument: a file is not given, cannot be read, or holds a certificate that is damaged or that TLS does not
//          accept; the key is readable by others or not that of the certificate. Renew then leaves everything as it was.
// Threads  thread-safe; gRPC asks from its own threads.
// Source   grpc/grpc_security.h grpc_ssl_server_certificate_config_callback, which C++ has no class for.
#ifndef DAEMON_SERVICE_TLS_FILES_H_
#define DAEMON_SERVICE_TLS_FILES_H_

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "daemon/service/tls_options.h"

namespace perfd::daemon {

class ServerCertificates {
 public:
  static absl::StatusOr<std::unique_ptr<ServerCertificates>> Read(const TlsOptions& options);

  // Clients must show a certificate of the same CA.
  std::shared_ptr<grpc::ServerCredentials> Credentials();
  absl::Status Renew(const TlsOptions& options);

 private:
  struct Pem {
    std::string ca;
    std::string certificate;
    std::string key;
  };

  explicit ServerCertificates(Pem pem) : pem_(std::move(pem)) {}
  static absl::StatusOr<Pem> ReadFiles(const TlsOptions& options);
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config);

  Mutex mutex_;
  Pem pem_ ABSL_GUARDED_BY(mutex_);
  bool fetched_ ABSL_GUARDED_BY(mutex_) = false;  // gRPC has what is in pem_
};

}  // namespace perfd::daemon

#endif  // DAEMON_SERVICE_TLS_FILES_H_
