#include "core/dial/dial_settings.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/certificate/certificate.h"

namespace perfd {

bool NeedsTls(const DialOptions& options) {
  return !absl::StartsWith(options.address, "unix:") && !absl::StartsWith(options.address, "/");
}

ExpiryCheck CheckOwnCertificate(const DialOptions& options, absl::Time now) {
  ExpiryCheck check = CheckExpiry(LoadCertificates(options.tls_cert), now);
  check.found = absl::StrCat(options.tls_cert, ": ", check.found);
  return check;
}

DialOptions DialSettings::options() const {
  MutexLock lock(&mutex_);
  return options_;
}

void DialSettings::SetTls(const DialOptions& options) {
  MutexLock lock(&mutex_);
  options_.tls_ca = options.tls_ca;
  options_.tls_cert = options.tls_cert;
  options_.tls_key = options.tls_key;
}

void DialSettings::WarnOfExpiry(absl::Time now) {
  DialOptions options;
  {
    MutexLock lock(&mutex_);
    if (!NeedsTls(options_) || !warning_.Due(now)) return;
    options = options_;
  }
  const ExpiryCheck check = CheckOwnCertificate(options, now);
  if (!check.ok) LogWarning("the certificate {}; {}", check.found, kRenewOwnCertificate);
}

}  // namespace perfd
