#include "daemon/service/tls_files.h"

#include <grpc/grpc.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace perfd {
namespace {

constexpr char kAdvice[] = "; make a site CA and certificates with deploy/make-certs.sh";
constexpr off_t kMaxPemBytes = 1 << 20;

absl::StatusOr<std::string> ReadPem(const char* flag, const std::string& path) {
  if (path.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen-tcp needs mutual TLS, but ", flag, " is not given", kAdvice));
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", path, ": ", std::strerror(errno), kAdvice));
  }
  if (!S_ISREG(info.st_mode) || info.st_size > kMaxPemBytes) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", path, " is not a PEM file", kAdvice));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!absl::StrContains(text, "-----BEGIN ")) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", path, " is not a PEM file", kAdvice));
  }
  return text;
}

absl::Status CheckPrivate(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || (info.st_mode & 077) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the key ", path, " can be read by others: chmod 600 ", path));
}

absl::Status NotAPair(const TlsOptions& options) {
  return absl::InvalidArgumentError(absl::StrCat(
      "--tls-key ", options.key, " is not the key of --tls-cert ", options.cert, kAdvice));
}

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, FreeBio>;

Bio Open(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// A key with a passphrase is none for a daemon: nobody is there to be asked.
int NoPassphrase(char*, int, int, void*) {
  return 0;
}

// Of renewed files that are no pair gRPC would say nothing and go on with the old ones.
bool IsPair(const std::string& certificate, const std::string& key) {
  const std::unique_ptr<X509, decltype(&X509_free)> x509(
      PEM_read_bio_X509(Open(certificate).get(), nullptr, nullptr, nullptr), &X509_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> pkey(
      PEM_read_bio_PrivateKey(Open(key).get(), nullptr, &NoPassphrase, nullptr), &EVP_PKEY_free);
  const bool pair =
      x509 != nullptr && pkey != nullptr && X509_check_private_key(x509.get(), pkey.get()) == 1;
  ERR_clear_error();  // of this thread: TLS itself looks there
  return pair;
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

absl::StatusOr<ServerCertificates::Pem> ServerCertificates::ReadFiles(const TlsOptions& options) {
  Pem pem;
  ASSIGN_OR_RETURN(pem.ca, ReadPem("--tls-ca", options.ca));
  ASSIGN_OR_RETURN(pem.certificate, ReadPem("--tls-cert", options.cert));
  ASSIGN_OR_RETURN(pem.key, ReadPem("--tls-key", options.key));
  RETURN_IF_ERROR(CheckPrivate(options.key));
  if (!IsPair(pem.certificate, pem.key)) return NotAPair(options);
  return pem;
}

absl::StatusOr<std::unique_ptr<ServerCertificates>> ServerCertificates::Read(
    const TlsOptions& options) {
  ASSIGN_OR_RETURN(Pem pem, ReadFiles(options));
  return std::unique_ptr<ServerCertificates>(new ServerCertificates(std::move(pem)));
}

absl::Status ServerCertificates::Renew(const TlsOptions& options) {
  ASSIGN_OR_RETURN(Pem pem, ReadFiles(options));
  absl::MutexLock lock(&mutex_);
  pem_ = std::move(pem);
  fetched_ = false;
  return absl::OkStatus();
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
  absl::MutexLock lock(&own.mutex_);
  if (own.fetched_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  const grpc_ssl_pem_key_cert_pair pair{own.pem_.key.c_str(), own.pem_.certificate.c_str()};
  *config = grpc_ssl_server_certificate_config_create(own.pem_.ca.c_str(), &pair, 1);
  own.fetched_ = true;
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

}  // namespace perfd
