#include "client/commands/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"

namespace perfd::client {
namespace {

constexpr mode_t kMode = 0666;  // less the user's umask

absl::Status Explained(const std::string& path, int error) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  const std::string what = absl::StrCat("cannot write '", path, "': ");
  switch (error) {
    case EEXIST:
      return absl::AlreadyExistsError(
          absl::StrCat(what, "it exists; name another file, or add --force to write over it"));
    case ENOENT:
      return absl::FailedPreconditionError(
          absl::StrCat(what, "there is no directory '", folder, "'"));
    case EISDIR:
      return absl::FailedPreconditionError(absl::StrCat(what, "it is a directory; name a file"));
    case ENOTDIR:
      return absl::FailedPreconditionError(absl::StrCat(what, "'", folder, "' is no directory"));
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(
          absl::StrCat(what, strerror(error), "; name a file in a directory where you may write"));
    default:
      return absl::UnknownError(absl::StrCat(what, strerror(error)));
  }
}

absl::Status WriteAll(int fd, const std::string& path, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Explained(path, errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteOutputFile(const std::string& path, absl::string_view bytes, IfThere if_there) {
  const bool is_new = if_there == IfThere::kKeep;
  const UniqueFd fd(
      open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (is_new ? O_EXCL : O_TRUNC), kMode));
  if (!fd.valid()) return Explained(path, errno);
  absl::Status status = WriteAll(fd.get(), path, bytes);
  // Half a file must not look like a whole one; what was there before is gone in any case.
  if (!status.ok() && is_new) unlink(path.c_str());
  return status;
}

}  // namespace perfd::client
