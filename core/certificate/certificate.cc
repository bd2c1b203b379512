#include "core/certificate/certificate.h"

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/certificate/openssl_pointers.h"

namespace perfd {
namespace {

constexpr size_t kMaxPemBytes = 1 << 20;

using Number = std::unique_ptr<BIGNUM, FreeWith<&BN_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, FreeWith<&GENERAL_NAMES_free>>;

std::string SerialOf(const X509& x509) {
  const Number number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(&x509), nullptr));
  if (number == nullptr) return "";
  const auto free_text = [](char* text) { OPENSSL_free(text); };
  const std::unique_ptr<char, decltype(free_text)> text(BN_bn2hex(number.get()), free_text);
  const std::string digits = text == nullptr ? "" : text.get();
  const size_t first = digits.find_first_not_of('0');
  return first == std::string::npos ? "0" : digits.substr(first);
}

std::vector<std::string> UrisOf(const X509& x509) {
  std::vector<std::string> uris;
  const Names names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(&x509, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* text = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                      static_cast<size_t>(ASN1_STRING_length(text)));
  }
  return uris;
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm fields{};
  if (ASN1_TIME_to_tm(time, &fields) != 1) return absl::InfinitePast();  // as if it were over
  return absl::FromTM(fields, absl::UTCTimeZone());
}

}  // namespace

Certificate CertificateOf(const X509& x509) {
  return {.serial = SerialOf(x509),
          .uris = UrisOf(x509),
          .begins = TimeOf(X509_get0_notBefore(&x509)),
          .ends = TimeOf(X509_get0_notAfter(&x509))};
}

absl::StatusOr<std::vector<Certificate>> ReadCertificates(const std::string& pem) {
  const Bio bio = OpenText(pem);
  std::vector<Certificate> found;
  while (const X509Pointer x509 = NextCertificate(bio)) {
    found.push_back(CertificateOf(*x509));
  }
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();  // of this thread: TLS itself looks there
  const bool at_end =
      ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (!at_end)
    return absl::InvalidArgumentError(
        absl::StrCat("certificate ", found.size() + 1, " is damaged"));
  if (found.empty()) return absl::InvalidArgumentError("it holds no certificate");
  return found;
}

absl::StatusOr<std::vector<Certificate>> LoadCertificates(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(kMaxPemBytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in.is_open() || in.bad())
    return absl::InvalidArgumentError(absl::StrCat("it cannot be read: ", std::strerror(errno)));
  text.resize(static_cast<size_t>(in.gcount()));
  return ReadCertificates(text);
}

}  // namespace perfd
