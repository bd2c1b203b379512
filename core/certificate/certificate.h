// core/certificate/certificate.h - what a certificate says, as plain values.
//
// Shape    ReadCertificates(text) -> every certificate of a PEM text, in order; LoadCertificates(path) of a file.
// Errors   kInvalidArgument: "certificate 2 is damaged", "it holds no certificate", "it cannot be read: ...".
// Threads  thread-safe.
// Source   RFC 5280 4.1.2.2 (serial), 4.1.2.5 (validity), 4.2.1.6 (alternative names).
#ifndef CORE_CERTIFICATE_CERTIFICATE_H_
#define CORE_CERTIFICATE_CERTIFICATE_H_

#include <openssl/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace perfd {

struct Certificate {
  std::string serial;  // upper case hexadecimal digits without leading zeros, as openssl prints it
  std::vector<std::string> uris;  // alternative names of that kind
  absl::Time begins;
  absl::Time ends;
};

Certificate CertificateOf(const X509& x509);
absl::StatusOr<std::vector<Certificate>> ReadCertificates(const std::string& pem);
absl::StatusOr<std::vector<Certificate>> LoadCertificates(const std::string& path);

}  // namespace perfd

#endif  // CORE_CERTIFICATE_CERTIFICATE_H_
