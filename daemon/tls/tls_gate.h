// daemon/tls/tls_gate.h - all of TLS at the TCP door: our certificates, whose certificates are accepted, and what to say of both.
//
// Shape    Open before the server that uses Credentials(); Renew* at a reload; Admit with every call.
// Errors   Open: everything or nothing. RenewCertificates, RenewRevoked: what was stays in force. Admit: kPermissionDenied.
// Threads  thread-safe. Must outlive the server.
#ifndef DAEMON_TLS_TLS_GATE_H_
#define DAEMON_TLS_TLS_GATE_H_

#include <grpcpp/security/auth_context.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/certificate/expiry.h"
#include "core/model/node.h"
#include "daemon/metrics/figures.h"
#include "daemon/tls/client_check.h"
#include "daemon/tls/server_certificates.h"
#include "daemon/tls/tls_options.h"

namespace perfd::daemon {

class TlsGate {
 public:
  absl::Status Open(const TlsOptions& options);
  // Without a TCP door nothing.
  absl::Status RenewCertificates(const TlsOptions& options);
  absl::Status RenewRevoked(const TlsOptions& options);
  std::shared_ptr<grpc::ServerCredentials> Credentials() { return server_.Credentials(); }

  absl::StatusOr<std::shared_ptr<PeerCertificate>> Admit(const grpc::AuthContext* peer);
  // A peer without a certificate came through another door.
  absl::Status Recheck(PeerCertificate* certificate);

  // Often: once a day a line in the log for each certificate of ours that ends soon.
  void WarnOfExpiry(absl::Time now);
  TlsFigure Figures();
  // For `doctor`.
  std::vector<DoctorCheck> Checks(absl::Time now);

 private:
  // A file of ours and, of its certificates, the one that ends first.
  struct Ours {
    std::string name;
    std::string path;
    const char* fix;
    Certificate facts;
  };

  absl::Status ApplyFiles(const TlsOptions& options, TlsFiles files);
  absl::Status ApplyRevoked(const TlsOptions& options);
  bool opened();

  ServerCertificates server_;
  ClientCheck clients_;
  Mutex mutex_;
  std::vector<Ours> ours_ ABSL_GUARDED_BY(mutex_);  // empty: there is no TCP door
  DoctorCheck revoked_ ABSL_GUARDED_BY(mutex_);
  Daily warnings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perfd::daemon

#endif  // DAEMON_TLS_TLS_GATE_H_
