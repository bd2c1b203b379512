// Certificates for tests, made here: any serial, name and time of validity.
#ifndef TESTS_UNIT_CORE_CERTIFICATE_MADE_CERTIFICATE_H_
#define TESTS_UNIT_CORE_CERTIFICATE_MADE_CERTIFICATE_H_

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/certificate/openssl_pointers.h"

namespace perfd {

struct CertificateSpec {
  std::string serial = "3A";                      // hexadecimal
  std::string names = "URI:perfd://agent/node1";  // as in openssl's x509v3_config; empty: none
  absl::Time begins = absl::FromUnixSeconds(1'700'000'000);
  absl::Time ends = absl::FromUnixSeconds(1'734'000'000);
  bool authority = false;
};

class MadeCertificate {
 public:
  // Signed by `issuer`; null: by itself.
  explicit MadeCertificate(const CertificateSpec& spec, const MadeCertificate* issuer = nullptr);
  std::string Pem() const;

 private:
  std::unique_ptr<EVP_PKEY, FreeWith<&EVP_PKEY_free>> key_;
  X509Pointer x509_;
};

}  // namespace perfd

#endif  // TESTS_UNIT_CORE_CERTIFICATE_MADE_CERTIFICATE_H_
