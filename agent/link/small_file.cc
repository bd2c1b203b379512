#include "agent/link/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {
namespace {

absl::Status ErrnoError(const std::string& what, const std::string& path) {
  const int error = errno;
  if (error == ENOSPC || error == EDQUOT)
    return absl::ResourceExhaustedError(absl::StrCat(what, " ", path, ": the disk is full"));
  return absl::ErrnoToStatus(error, absl::StrCat(what, " ", path));
}

}  // namespace

absl::Status ReplaceSmallFile(const std::string& path, absl::string_view contents) {
  const std::string temporary = absl::StrCat(path, ".new");
  UniqueFd fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return ErrnoError("create", temporary);
  for (size_t done = 0; done < contents.size();) {
    const ssize_t put = ::write(fd.get(), contents.data() + done, contents.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      const absl::Status status = ErrnoError("write", temporary);
      ::unlink(temporary.c_str());
      return status;
    }
    done += static_cast<size_t>(put);
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const absl::Status status = ErrnoError("rename", temporary);
    ::unlink(temporary.c_str());
    return status;
  }
  return absl::OkStatus();
}

}  // namespace perfd::agent
