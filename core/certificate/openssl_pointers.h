// core/certificate/openssl_pointers.h - objects of OpenSSL that are freed with their owner.
#ifndef CORE_CERTIFICATE_OPENSSL_POINTERS_H_
#define CORE_CERTIFICATE_OPENSSL_POINTERS_H_

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace perfd {

template <auto free>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    free(object);
  }
};

using Bio = std::unique_ptr<BIO, FreeWith<&BIO_free>>;
using X509Pointer = std::unique_ptr<X509, FreeWith<&X509_free>>;

// Reads `text`, which must outlive it.
inline Bio OpenText(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// The next certificate; null at the end and where one is damaged.
inline X509Pointer NextCertificate(const Bio& bio) {
  return X509Pointer(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

}  // namespace perfd

#endif  // CORE_CERTIFICATE_OPENSSL_POINTERS_H_
