// daemon/tls/client_check.h - whether the certificate of a connected client still holds, by the rules of this moment.
//
// Why      gRPC looks at a certificate once, in the handshake; a connection may stand for months.
// Shape    Check(certificate, now) with every call and, again and again, for every stream that stands. What was accepted is
//          looked at anew only when the rules have changed or something in its chain has ended.
// Errors   kPermissionDenied: revoked, over, or of no CA that is accepted now; the message says which.
// Threads  thread-safe.
// Source   X509_verify_cert(3ssl), with the flags of gRPC's ssl_ctx_load_verification_certs (ssl_transport_security.cc).
#ifndef DAEMON_TLS_CLIENT_CHECK_H_
#define DAEMON_TLS_CLIENT_CHECK_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/certificate/certificate.h"
#include "core/certificate/openssl_pointers.h"
#include "daemon/tls/revoked_list.h"

namespace perfd::daemon {

// As it came in the handshake.
class PeerCertificate {
 public:
  // `chain`: what the client sent besides, as PEM.
  static absl::StatusOr<std::shared_ptr<PeerCertificate>> Read(std::string pem, std::string chain);
  const Certificate& facts() const { return facts_; }
  // "perfd://agent/node1 (serial 3A)".
  std::string Name() const;

 private:
  friend class ClientCheck;
  PeerCertificate(Certificate facts, std::string pem, std::string chain);

  const Certificate facts_;
  const std::string pem_;
  const std::string chain_;
  Mutex mutex_;
  uint64_t accepted_by_ ABSL_GUARDED_BY(mutex_) = 0;  // the rules of this number; 0: none yet
  absl::Time accepted_until_ ABSL_GUARDED_BY(mutex_);
};

class ClientCheck {
 public:
  enum class Refusal { kRevoked, kNotValidNow, kOtherCa };
  static constexpr size_t kRefusals = 3;

  // The CAs of a PEM text. kInvalidArgument, and nothing changes: there is none that can be read.
  absl::Status SetAuthorities(const std::string& pem);
  void SetRevoked(RevokedList list);
  absl::Status Check(PeerCertificate& certificate, absl::Time now);
  // How often Check refused, by Refusal.
  std::array<uint64_t, kRefusals> refused() const;

 private:
  using Store = std::unique_ptr<X509_STORE, FreeWith<&X509_STORE_free>>;
  // Shared with the checks under way, which take place without the lock.
  struct Rules {
    uint64_t number = 1;
    std::shared_ptr<const Store> authorities;
    std::shared_ptr<const RevokedList> revoked;
  };

  absl::Status CheckAnew(PeerCertificate& certificate, const Rules& rules, absl::Time now);
  absl::Status Refuse(Refusal why, const PeerCertificate& certificate, const std::string& words);
  Rules Now() const;

  mutable Mutex mutex_;
  Rules rules_ ABSL_GUARDED_BY(mutex_);
  std::array<uint64_t, kRefusals> refused_ ABSL_GUARDED_BY(mutex_) = {};
};

// The value of a label.
const char* RefusalName(ClientCheck::Refusal refusal);

}  // namespace perfd::daemon

#endif  // DAEMON_TLS_CLIENT_CHECK_H_
