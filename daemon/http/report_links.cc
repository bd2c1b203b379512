#include "daemon/http/report_links.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/host_name.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"
#include "core/files/own_folder.h"

namespace perfd::daemon {
namespace {

constexpr char kFile[] = "report.key";
constexpr size_t kSecretBytes = 32;
constexpr size_t kKeyBytes = 16;
constexpr mode_t kForOthers = S_IRWXG | S_IRWXO;

absl::StatusOr<std::string> ReadSecret(const UniqueFd& fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0)
    return absl::InternalError(absl::StrCat("fstat ", path, ": ", std::strerror(errno)));
  const bool ours = info.st_uid == ::geteuid() || info.st_uid == 0;
  if (!S_ISREG(info.st_mode) || !ours || (info.st_mode & kForOthers) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        path,
        " must be a file of perfd's user that nobody else may read: chmod 600 it, or remove "
        "it (links given out so far then end)"));
  }
  std::string secret(kSecretBytes + 1, '\0');
  const ssize_t size = ::read(fd.get(), secret.data(), secret.size());
  if (size != static_cast<ssize_t>(kSecretBytes)) {
    return absl::DataLossError(absl::StrCat(
        path, " does not hold ", kSecretBytes,
        " bytes: remove it, and perfd makes another (links given out so far then end)"));
  }
  secret.resize(kSecretBytes);
  return secret;
}

absl::StatusOr<std::string> MakeSecret(const OwnFolder& folder) {
  std::string secret(kSecretBytes, '\0');
  if (::getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
    return absl::InternalError(absl::StrCat("getrandom: ", std::strerror(errno)));
  // A secret that is in use is on disk: half a file, after a crash, would be refused at the next start.
  RETURN_IF_ERROR(folder.Replace(kFile, secret));
  return secret;
}

absl::StatusOr<std::string> LoadSecret(const OwnFolder& folder) {
  const std::string path = folder.PathOf(kFile);
  const UniqueFd fd(::openat(folder.fd(), kFile, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (fd.valid()) return ReadSecret(fd, path);
  if (errno == ENOENT) return MakeSecret(folder);
  return absl::PermissionDeniedError(absl::StrCat("open ", path, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<ReportLinks> ReportLinks::Load(const std::string& folder, std::string base,
                                              bool open) {
  ASSIGN_OR_RETURN(const OwnFolder own, OwnFolder::Open(folder));
  ASSIGN_OR_RETURN(std::string secret, LoadSecret(own));
  return ReportLinks(std::move(secret), std::move(base), open);
}

std::string ReportLinks::KeyOf(absl::string_view profile_id) const {
  const std::string text = absl::StrCat("report ", profile_id);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  if (::HMAC(::EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()), bytes, text.size(),
             digest.data(), &size) == nullptr ||
      size < kKeyBytes)
    return "";
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), kKeyBytes));
}

std::string ReportLinks::UrlOf(absl::string_view profile_id) const {
  const std::string page = absl::StrCat(base_, "/profiles/", profile_id);
  return open_ ? page : absl::StrCat(page, "?key=", KeyOf(profile_id));
}

bool ReportLinks::Opens(absl::string_view profile_id, absl::string_view key) const {
  if (open_) return true;
  const std::string right = KeyOf(profile_id);
  return !right.empty() && key.size() == right.size() &&
         ::CRYPTO_memcmp(key.data(), right.data(), right.size()) == 0;
}

std::string LinkBase(absl::string_view wanted, absl::string_view listening) {
  if (!wanted.empty()) {
    absl::ConsumeSuffix(&wanted, "/");
    return std::string(wanted);
  }
  for (const absl::string_view any : {"0.0.0.0:", "[::]:"}) {
    if (absl::StartsWith(listening, any))
      return absl::StrCat("http://", HostName(), ":", listening.substr(any.size()));
  }
  return absl::StrCat("http://", listening);
}

}  // namespace perfd::daemon
