// daemon/tls/server_certificates.h - the certificates of the TCP door, checked before they are used, and renewed under way.
//
// Shape    ReadTlsFiles, then Use, then Credentials() for one server, which this must outlive. After another Use the next
//          handshake uses the new ones; connections that stand are not touched here.
// Errors   kInvalidArgument: a file is not given, cannot be read, or holds a certificate that is damaged, not valid now or that
//          TLS does not accept; the key is readable by others or not that of the certificate.
// Threads  thread-safe; gRPC asks from its own threads.
// Source   grpc/grpc_security.h grpc_ssl_server_certificate_config_callback, which C++ has no class for.
#ifndef DAEMON_TLS_SERVER_CERTIFICATES_H_
#define DAEMON_TLS_SERVER_CERTIFICATES_H_

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/certificate/certificate.h"
#include "daemon/tls/tls_options.h"

namespace perfd::daemon {

struct TlsFiles {
  std::string ca;  // PEM texts
  std::string certificate;
  std::string key;
  Certificate ca_facts;  // of each file, the certificate that ends first
  Certificate certificate_facts;
};

absl::StatusOr<TlsFiles> ReadTlsFiles(const TlsOptions& options);

class ServerCertificates {
 public:
  void Use(TlsFiles files);
  // Clients must show a certificate of the same CA.
  std::shared_ptr<grpc::ServerCredentials> Credentials();

 private:
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config);

  Mutex mutex_;
  TlsFiles files_ ABSL_GUARDED_BY(mutex_);
  bool fetched_ ABSL_GUARDED_BY(mutex_) = false;  // gRPC has what is in files_
};

}  // namespace perfd::daemon

#endif  // DAEMON_TLS_SERVER_CERTIFICATES_H_
