#include "tests/unit/core/certificate/made_certificate.h"

#include <gtest/gtest.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace perfd {
namespace {

using Extension = std::unique_ptr<X509_EXTENSION, FreeWith<&X509_EXTENSION_free>>;
using Number = std::unique_ptr<BIGNUM, FreeWith<&BN_free>>;

void Extend(X509* x509, int kind, const char* value) {
  const Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, kind, value));
  ASSERT_NE(extension, nullptr) << value;
  ASSERT_EQ(X509_add_ext(x509, extension.get(), -1), 1);
}

void SetSerial(X509* x509, const std::string& hex) {
  BIGNUM* number = nullptr;
  ASSERT_GT(BN_hex2bn(&number, hex.c_str()), 0) << hex;
  const Number owner(number);
  ASSERT_NE(BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x509)), nullptr);
}

}  // namespace

MadeCertificate::MadeCertificate(const CertificateSpec& spec, const MadeCertificate* issuer)
    : key_(EVP_EC_gen("P-256")), x509_(X509_new()) {
  X509_set_version(x509_.get(), X509_VERSION_3);
  SetSerial(x509_.get(), spec.serial);
  ASN1_TIME_set(X509_getm_notBefore(x509_.get()), absl::ToTimeT(spec.begins));
  ASN1_TIME_set(X509_getm_notAfter(x509_.get()), absl::ToTimeT(spec.ends));
  const std::string name = "perfd test " + spec.serial;
  X509_NAME_add_entry_by_txt(X509_get_subject_name(x509_.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  const MadeCertificate& signer = issuer == nullptr ? *this : *issuer;
  X509_set_issuer_name(x509_.get(), X509_get_subject_name(signer.x509_.get()));
  X509_set_pubkey(x509_.get(), key_.get());
  Extend(x509_.get(), NID_basic_constraints, spec.authority ? "critical,CA:TRUE" : "CA:FALSE");
  if (!spec.authority) Extend(x509_.get(), NID_ext_key_usage, "clientAuth");
  if (!spec.names.empty()) Extend(x509_.get(), NID_subject_alt_name, spec.names.c_str());
  EXPECT_GT(X509_sign(x509_.get(), signer.key_.get(), EVP_sha256()), 0);
}

std::string MadeCertificate::Pem() const {
  const Bio bio(BIO_new(BIO_s_mem()));
  EXPECT_EQ(PEM_write_bio_X509(bio.get(), x509_.get()), 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<size_t>(size)};
}

}  // namespace perfd
