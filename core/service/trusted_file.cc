#include "core/service/trusted_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"

namespace perfd {
namespace {

absl::Status CannotRead(const std::string& path, int error) {
  const std::string why = absl::StrCat("cannot read ", path, ": ", std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(why) : absl::PermissionDeniedError(why);
}

// Who may write the file may choose what we trust, where we write and whom we obey.
absl::Status CheckFile(const std::string& path, const struct stat& facts) {
  if (!S_ISREG(facts.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return absl::PermissionDeniedError(
        absl::StrCat(path, " can be changed by others: chmod go-w ", path));
  if (facts.st_uid != 0 && facts.st_uid != ::geteuid())
    return absl::PermissionDeniedError(absl::StrCat(path, " belongs to uid ", facts.st_uid,
                                                    ", neither root nor us: chown root ", path));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadTrustedFile(const std::string& path, size_t most_bytes) {
  // A pipe in its place must not stop us.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat facts {};
  if (!file.valid() || ::fstat(file.get(), &facts) != 0) return CannotRead(path, errno);
  RETURN_IF_ERROR(CheckFile(path, facts));
  std::string text(most_bytes + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return CannotRead(path, errno);
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  return text;
}

}  // namespace perfd
