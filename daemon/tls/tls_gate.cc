#include "daemon/tls/tls_gate.h"

#include <grpc/grpc_security_constants.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace perfd::daemon {
namespace {

constexpr char kRenew[] = "make it anew with make-certs.sh, then systemctl reload perfd";
constexpr char kRollOver[] = "see \"Rollover of the CA\" in docs/security.md";

std::string Property(const grpc::AuthContext& peer, const char* name) {
  const std::vector<grpc::string_ref> values = peer.FindPropertyValues(name);
  return values.empty() ? "" : std::string(values.front().data(), values.front().size());
}

}  // namespace

absl::Status TlsGate::ApplyFiles(const TlsOptions& options, TlsFiles files) {
  // First: clients of a CA that is new here pass the handshake at once after Use.
  RETURN_IF_ERROR(clients_.SetAuthorities(files.ca));
  {
    MutexLock lock(&mutex_);
    ours_ = {{"ca", options.ca, kRollOver, files.ca_facts},
             {"server", options.cert, kRenew, files.certificate_facts}};
    warnings_ = Daily();
  }
  server_.Use(std::move(files));
  return absl::OkStatus();
}

absl::Status TlsGate::ApplyRevoked(const TlsOptions& options) {
  absl::StatusOr<RevokedList> list = RevokedList::Read(options.revoked);
  DoctorCheck check;
  check.name = "revoked certificates";
  check.ok = list.ok();
  if (list.ok()) {
    check.found = absl::StrCat(list->size(), list->size() == 1 ? " entry" : " entries",
                               options.revoked.empty() ? "; tls.revoked is not set" : "");
    clients_.SetRevoked(*std::move(list));
  } else {
    check.found = absl::StrCat("not taken, the list before it holds: ", list.status().message());
    check.fix = absl::StrCat("repair ", options.revoked, ", then systemctl reload perfd");
  }
  MutexLock lock(&mutex_);
  revoked_ = std::move(check);
  return list.status();
}

absl::Status TlsGate::Open(const TlsOptions& options) {
  ASSIGN_OR_RETURN(TlsFiles files, ReadTlsFiles(options));
  RETURN_IF_ERROR(ApplyRevoked(options));
  return ApplyFiles(options, std::move(files));
}

bool TlsGate::opened() {
  MutexLock lock(&mutex_);
  return !ours_.empty();
}

absl::Status TlsGate::RenewCertificates(const TlsOptions& options) {
  if (!opened()) return absl::OkStatus();
  ASSIGN_OR_RETURN(TlsFiles files, ReadTlsFiles(options));
  return ApplyFiles(options, std::move(files));
}

absl::Status TlsGate::RenewRevoked(const TlsOptions& options) {
  return opened() ? ApplyRevoked(options) : absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<PeerCertificate>> TlsGate::Admit(const grpc::AuthContext* peer) {
  if (peer == nullptr || !peer->IsPeerAuthenticated())
    return absl::PermissionDeniedError("a certificate is needed: deploy/make-certs.sh makes one");
  absl::StatusOr<std::shared_ptr<PeerCertificate>> certificate =
      PeerCertificate::Read(Property(*peer, GRPC_X509_PEM_CERT_PROPERTY_NAME),
                            Property(*peer, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME));
  if (!certificate.ok())
    return absl::PermissionDeniedError(
        absl::StrCat("the certificate cannot be used: ", certificate.status().message()));
  RETURN_IF_ERROR(Recheck(certificate->get()));
  return certificate;
}

absl::Status TlsGate::Recheck(PeerCertificate* certificate) {
  return certificate == nullptr ? absl::OkStatus() : clients_.Check(*certificate, absl::Now());
}

void TlsGate::WarnOfExpiry(absl::Time now) {
  MutexLock lock(&mutex_);
  if (!warnings_.Due(now)) return;
  for (const Ours& own : ours_) {
    const ExpiryCheck check = CheckExpiry(std::vector<Certificate>{own.facts}, now);
    if (!check.ok) LogWarning("the certificate {}: {}; {}", own.path, check.found, own.fix);
  }
}

TlsFigure TlsGate::Figures() {
  TlsFigure figure;
  const auto refused = clients_.refused();
  for (size_t i = 0; i < refused.size(); ++i)
    figure.refused.emplace_back(RefusalName(static_cast<ClientCheck::Refusal>(i)), refused[i]);
  MutexLock lock(&mutex_);
  for (const Ours& own : ours_)
    figure.expiry_seconds.emplace_back(own.name, absl::ToUnixSeconds(own.facts.ends));
  return figure;
}

std::vector<DoctorCheck> TlsGate::Checks(absl::Time now) {
  MutexLock lock(&mutex_);
  std::vector<DoctorCheck> checks;
  for (const Ours& own : ours_) {
    const ExpiryCheck check = CheckExpiry(std::vector<Certificate>{own.facts}, now);
    checks.push_back({.name = absl::StrCat("certificate ", own.name),
                      .ok = check.ok,
                      .optional = check.usable,
                      .found = absl::StrCat(own.path, ": ", check.found),
                      .fix = check.ok ? "" : own.fix});
  }
  if (!ours_.empty()) checks.push_back(revoked_);
  return checks;
}

}  // namespace perfd::daemon
