#include "daemon/service/tls_files.h"

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

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ReadServerCredentials(
    const TlsOptions& options) {
  grpc::SslServerCredentialsOptions ssl(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  ASSIGN_OR_RETURN(ssl.pem_root_certs, ReadPem("--tls-ca", options.ca));
  grpc::SslServerCredentialsOptions::PemKeyCertPair pair;
  ASSIGN_OR_RETURN(pair.cert_chain, ReadPem("--tls-cert", options.cert));
  ASSIGN_OR_RETURN(pair.private_key, ReadPem("--tls-key", options.key));
  RETURN_IF_ERROR(CheckPrivate(options.key));
  ssl.pem_key_cert_pairs.push_back(std::move(pair));
  return grpc::SslServerCredentials(ssl);
}

}  // namespace perfd
