#include "core/files/own_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"

namespace perfd {
namespace {

constexpr size_t kChunkBytes = 16384;

absl::Status CheckRegular(const struct stat& facts, const std::string& path) {
  if (S_ISREG(facts.st_mode)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
}

absl::StatusOr<std::string> ReadChecked(const std::string& path, size_t limit,
                                        absl::Status (*check)(const struct stat&,
                                                              const std::string&)) {
  // A pipe in its place must not stop us.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat facts {};
  if (!file.valid() || ::fstat(file.get(), &facts) != 0) return FileStatus(errno, "open", path);
  RETURN_IF_ERROR(check(facts, path));
  return ReadAll(file.get(), limit, path);
}

}  // namespace

absl::Status FileStatus(int error, absl::string_view operation, absl::string_view path) {
  const std::string text = absl::StrCat(operation, " ", path, ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
      return absl::PermissionDeniedError(text);
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(absl::StrCat(text, ": the disk is full"));
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(absl::StrCat(text, " (raise RLIMIT_NOFILE)"));
    default:
      return absl::UnavailableError(text);
  }
}

absl::Status CheckBelieved(const struct stat& facts, const std::string& path) {
  RETURN_IF_ERROR(CheckRegular(facts, path));
  if (facts.st_uid != 0 && facts.st_uid != ::geteuid())
    return absl::PermissionDeniedError(absl::StrCat(path, " belongs to uid ", facts.st_uid,
                                                    ", neither to root nor to us: not believed"));
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return absl::PermissionDeniedError(
        absl::StrCat(path, " can be written by others: not believed"));
  return absl::OkStatus();
}

absl::Status CheckKey(const struct stat& facts, const std::string& path) {
  RETURN_IF_ERROR(CheckRegular(facts, path));
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the key ", path, " can be read by others: chmod 600 ", path));
}

absl::StatusOr<std::string> ReadAll(int fd, size_t limit, const std::string& path) {
  std::string contents;
  std::array<char, kChunkBytes> chunk;
  while (contents.size() <= limit) {
    const size_t want = std::min(kChunkBytes, limit + 1 - contents.size());
    const ssize_t got = ::read(fd, chunk.data(), want);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileStatus(errno, "read", path);
    if (got == 0) return contents;
    contents.append(chunk.data(), static_cast<size_t>(got));
  }
  return absl::OutOfRangeError(absl::StrCat(path, " is longer than ", limit, " bytes"));
}

absl::StatusOr<std::string> ReadBoundedFile(const std::string& path, size_t limit) {
  return ReadChecked(path, limit, CheckRegular);
}

absl::StatusOr<std::string> ReadKeyFile(const std::string& path, size_t limit) {
  return ReadChecked(path, limit, CheckKey);
}

}  // namespace perfd
