#include "daemon/tls/server_certificates.h"

#include <grpc/grpc.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/certificate/expiry.h"
#include "core/certificate/openssl_pointers.h"
#include "core/files/own_file.h"

namespace perfd::daemon {
namespace {

constexpr char kAdvice[] = "; make a site CA and certificates with deploy/make-certs.sh";
constexpr size_t kMaxPemBytes = 1 << 20;

using ReadText = absl::StatusOr<std::string>(const std::string& path, size_t limit);

absl::StatusOr<std::string> ReadPem(const char* flag, const std::string& path,
                                    ReadText* read = &ReadBoundedFile) {
  if (path.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen-tcp needs mutual TLS, but ", flag, " is not given", kAdvice));
  }
  auto text = read(path, kMaxPemBytes);
  if (!text.ok())
    return absl::InvalidArgumentError(absl::StrCat(flag, ": ", text.status().message(), kAdvice));
  // gRPC takes texts up to their first zero.
  if (!absl::StrContains(*text, "-----BEGIN ") || text->find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", path, " is not a PEM file", kAdvice));
  }
  return text;
}

absl::Status NotAPair(const TlsOptions& options) {
  return absl::InvalidArgumentError(absl::StrCat(
      "--tls-key ", options.key, " is not the key of --tls-cert ", options.cert, kAdvice));
}

// A key with a passphrase is none for a daemon: nobody is there to be asked.
int NoPassphrase(char*, int, int, void*) {
  return 0;
}

// What the checks below guard against: renewed files that gRPC cannot use it leaves aside without a word, and goes on with the
// old ones; of a CA file it takes what stands before the first certificate that is broken.
absl::StatusOr<std::vector<Certificate>> CheckCertificates(const char* flag,
                                                           const std::string& path,
                                                           const std::string& text) {
  absl::StatusOr<std::vector<Certificate>> found = ReadCertificates(text);
  if (found.ok()) return found;
  return absl::InvalidArgumentError(absl::StrCat(flag, " ", path, ": ", found.status().message()));
}

// Also says what TLS would not accept of them, such as keys that are too short.
absl::Status CheckPair(const TlsOptions& options, const std::string& certificate,
                       const std::string& key) {
  const X509Pointer x509 = NextCertificate(OpenText(certificate));
  const std::unique_ptr<EVP_PKEY, FreeWith<&EVP_PKEY_free>> pkey(
      PEM_read_bio_PrivateKey(OpenText(key).get(), nullptr, &NoPassphrase, nullptr));
  const bool pair =
      x509 != nullptr && pkey != nullptr && X509_check_private_key(x509.get(), pkey.get()) == 1;
  ERR_clear_error();
  if (!pair) return NotAPair(options);
  const std::unique_ptr<SSL_CTX, FreeWith<&SSL_CTX_free>> trial(SSL_CTX_new(TLS_server_method()));
  if (trial != nullptr && SSL_CTX_use_certificate(trial.get(), x509.get()) == 1 &&
      SSL_CTX_use_PrivateKey(trial.get(), pkey.get()) == 1)
    return absl::OkStatus();
  const char* why = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat("TLS does not accept --tls-cert ", options.cert,
                                                 ": ", why == nullptr ? "no reason given" : why,
                                                 kAdvice));
}

// The credentials of gRPC's C library in the clothes of C++.
class CoreCredentials final : public grpc::ServerCredentials {
 public:
  explicit CoreCredentials(grpc_server_credentials* core) : core_(core) {}
  ~CoreCredentials() override { grpc_server_credentials_release(core_); }
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), core_);
  }

  grpc_server_credentials* const core_;
};

}  // namespace

absl::StatusOr<TlsFiles> ReadTlsFiles(const TlsOptions& options) {
  TlsFiles files;
  ASSIGN_OR_RETURN(files.ca, ReadPem("--tls-ca", options.ca));
  ASSIGN_OR_RETURN(files.certificate, ReadPem("--tls-cert", options.cert));
  ASSIGN_OR_RETURN(files.key, ReadPem("--tls-key", options.key, &ReadKeyFile));
  ASSIGN_OR_RETURN(const std::vector<Certificate> authorities,
                   CheckCertificates("--tls-ca", options.ca, files.ca));
  ASSIGN_OR_RETURN(const std::vector<Certificate> certificates,
                   CheckCertificates("--tls-cert", options.cert, files.certificate));
  RETURN_IF_ERROR(CheckPair(options, files.certificate, files.key));
  files.ca_facts = FirstToEnd(authorities);
  files.certificate_facts = FirstToEnd(certificates);
  // Of several CAs one may have ended: that is what a rollover leaves.
  const absl::Status valid = CheckValidNow(files.certificate_facts, absl::Now());
  if (valid.ok()) return files;
  return absl::InvalidArgumentError(
      absl::StrCat("--tls-cert ", options.cert, ": ", valid.message(), kAdvice));
}

void ServerCertificates::Use(TlsFiles files) {
  MutexLock lock(&mutex_);
  files_ = std::move(files);
  fetched_ = false;
}

std::shared_ptr<grpc::ServerCredentials> ServerCertificates::Credentials() {
  grpc_ssl_server_credentials_options* options =
      grpc_ssl_server_credentials_create_options_using_config_fetcher(
          GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, &ServerCertificates::Fetch,
          this);
  return std::make_shared<CoreCredentials>(
      grpc_ssl_server_credentials_create_with_options(options));
}

// Asked before every handshake.
grpc_ssl_certificate_config_reload_status ServerCertificates::Fetch(
    void* self, grpc_ssl_server_certificate_config** config) {
  auto& own = *static_cast<ServerCertificates*>(self);
  MutexLock lock(&own.mutex_);
  if (own.fetched_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  const grpc_ssl_pem_key_cert_pair pair{own.files_.key.c_str(), own.files_.certificate.c_str()};
  *config = grpc_ssl_server_certificate_config_create(own.files_.ca.c_str(), &pair, 1);
  own.fetched_ = true;
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

}  // namespace perfd::daemon
