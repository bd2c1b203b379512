#include "daemon/tls/client_check.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/certificate/expiry.h"

namespace perfd::daemon {
namespace {

using StoreContext = std::unique_ptr<X509_STORE_CTX, FreeWith<&X509_STORE_CTX_free>>;

void FreeStack(STACK_OF(X509) * stack) {
  sk_X509_pop_free(stack, &X509_free);
}
using Stack = std::unique_ptr<STACK_OF(X509), FreeWith<&FreeStack>>;

Stack ReadStack(const std::string& pem) {
  Stack stack(sk_X509_new_null());
  const Bio bio = OpenText(pem);
  while (X509Pointer x509 = NextCertificate(bio)) {
    if (sk_X509_push(stack.get(), x509.get()) > 0) (void)x509.release();
  }
  return stack;
}

// Until when the whole chain is valid.
absl::StatusOr<absl::Time> Verify(X509_STORE* authorities, const std::string& pem,
                                  const std::string& chain, absl::Time now) {
  const X509Pointer x509 = NextCertificate(OpenText(pem));
  const Stack others = ReadStack(chain);
  const StoreContext context(X509_STORE_CTX_new());
  if (x509 == nullptr || context == nullptr || authorities == nullptr ||
      X509_STORE_CTX_init(context.get(), authorities, x509.get(), others.get()) != 1 ||
      X509_STORE_CTX_set_default(context.get(), "ssl_client") != 1)
    return absl::InternalError("it cannot be checked");
  X509_STORE_CTX_set_time(context.get(), 0, absl::ToTimeT(now));
  if (X509_verify_cert(context.get()) != 1)
    return absl::PermissionDeniedError(
        X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get())));
  absl::Time until = absl::InfiniteFuture();
  STACK_OF(X509)* verified = X509_STORE_CTX_get0_chain(context.get());
  for (int i = 0; i < sk_X509_num(verified); ++i)
    until = std::min(until, CertificateOf(*sk_X509_value(verified, i)).ends);
  return until;
}

}  // namespace

PeerCertificate::PeerCertificate(Certificate facts, std::string pem, std::string chain)
    : facts_(std::move(facts)), pem_(std::move(pem)), chain_(std::move(chain)) {}

absl::StatusOr<std::shared_ptr<PeerCertificate>> PeerCertificate::Read(std::string pem,
                                                                       std::string chain) {
  ASSIGN_OR_RETURN(std::vector<Certificate> certificates, ReadCertificates(pem));
  return std::shared_ptr<PeerCertificate>(
      new PeerCertificate(std::move(certificates.front()), std::move(pem), std::move(chain)));
}

std::string PeerCertificate::Name() const {
  const auto ours = std::find_if(facts_.uris.begin(), facts_.uris.end(),
                                 [](const auto& uri) { return absl::StartsWith(uri, "perfd://"); });
  return absl::StrCat(ours == facts_.uris.end() ? "nobody" : *ours, " (serial ", facts_.serial,
                      ")");
}

absl::Status ClientCheck::SetAuthorities(const std::string& pem) {
  Store store(X509_STORE_new());
  const Stack stack = ReadStack(pem);
  bool taken = store != nullptr && sk_X509_num(stack.get()) > 0;
  for (int i = 0; taken && i < sk_X509_num(stack.get()); ++i)
    taken = X509_STORE_add_cert(store.get(), sk_X509_value(stack.get(), i)) == 1;
  ERR_clear_error();  // of this thread: TLS itself looks there
  if (!taken) return absl::InvalidArgumentError("the CA cannot be read");
  X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
  auto shared = std::make_shared<const Store>(std::move(store));
  MutexLock lock(&mutex_);
  rules_.authorities = std::move(shared);
  ++rules_.number;
  return absl::OkStatus();
}

void ClientCheck::SetRevoked(RevokedList list) {
  auto shared = std::make_shared<const RevokedList>(std::move(list));
  MutexLock lock(&mutex_);
  rules_.revoked = std::move(shared);
  ++rules_.number;
}

ClientCheck::Rules ClientCheck::Now() const {
  MutexLock lock(&mutex_);
  return rules_;
}

absl::Status ClientCheck::Check(PeerCertificate& certificate, absl::Time now) {
  const Rules rules = Now();
  {
    MutexLock lock(&certificate.mutex_);
    if (certificate.accepted_by_ == rules.number && now < certificate.accepted_until_)
      return absl::OkStatus();
  }
  return CheckAnew(certificate, rules, now);
}

absl::Status ClientCheck::CheckAnew(PeerCertificate& certificate, const Rules& rules,
                                    absl::Time now) {
  const RevokedBy revoked =
      rules.revoked == nullptr ? RevokedBy::kNothing : rules.revoked->Find(certificate.facts());
  if (revoked != RevokedBy::kNothing)
    return Refuse(
        Refusal::kRevoked, certificate,
        absl::StrCat("is revoked by its ", revoked == RevokedBy::kSerial ? "serial" : "name",
                     ": ask those who run perfd for another"));
  if (const absl::Status valid = CheckValidNow(certificate.facts(), now); !valid.ok())
    return Refuse(Refusal::kNotValidNow, certificate,
                  absl::StrCat("is not valid now: ", valid.message(), "; renew it"));
  const absl::StatusOr<absl::Time> until =
      Verify(rules.authorities == nullptr ? nullptr : rules.authorities->get(), certificate.pem_,
             certificate.chain_, now);
  ERR_clear_error();  // of this thread: TLS itself looks there
  if (!until.ok())
    return Refuse(Refusal::kOtherCa, certificate,
                  absl::StrCat("is of no CA that perfd accepts now (", until.status().message(),
                               "): get one of the present CA"));
  MutexLock lock(&certificate.mutex_);
  certificate.accepted_by_ = rules.number;
  certificate.accepted_until_ = *until;
  return absl::OkStatus();
}

absl::Status ClientCheck::Refuse(Refusal why, const PeerCertificate& certificate,
                                 const std::string& words) {
  MutexLock lock(&mutex_);
  ++refused_[static_cast<size_t>(why)];
  return absl::PermissionDeniedError(
      absl::StrCat("the certificate of ", certificate.Name(), " ", words));
}

std::array<uint64_t, ClientCheck::kRefusals> ClientCheck::refused() const {
  MutexLock lock(&mutex_);
  return refused_;
}

const char* RefusalName(ClientCheck::Refusal refusal) {
  switch (refusal) {
    case ClientCheck::Refusal::kRevoked:
      return "revoked";
    case ClientCheck::Refusal::kNotValidNow:
      return "not_valid_now";
    case ClientCheck::Refusal::kOtherCa:
      break;
  }
  return "other_ca";
}

}  // namespace perfd::daemon
