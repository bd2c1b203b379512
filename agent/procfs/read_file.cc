#include "agent/procfs/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"
#include "core/files/own_file.h"

namespace perfd::agent {
namespace {

constexpr size_t kChunkBytes = 16384;

absl::StatusOr<UniqueFd> OpenRegular(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return FileError(errno, "open", path);
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return FileError(errno, "stat", path);
  if (!S_ISREG(facts.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat("read ", path, ": not a regular file"));
  }
  return fd;
}

// Reads until the end or until one byte more than `limit` has arrived.
absl::StatusOr<std::string> ReadUpTo(int fd, const std::string& path, size_t limit) {
  std::string contents;
  std::array<char, kChunkBytes> chunk;
  while (contents.size() <= limit) {
    const size_t want = std::min(kChunkBytes, limit + 1 - contents.size());
    const ssize_t got = ::read(fd, chunk.data(), want);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "read", path);
    if (got == 0) break;
    contents.append(chunk.data(), static_cast<size_t>(got));
  }
  return contents;
}

}  // namespace

absl::Status FileError(int error, absl::string_view operation, absl::string_view path) {
  absl::Status status = FileStatus(error, operation, path);
  if (!absl::IsPermissionDenied(status)) return status;
  return absl::PermissionDeniedError(
      absl::StrCat(status.message(),
                   " (the process belongs to another user or is not dumpable; the agent needs to "
                   "be root or to have CAP_SYS_PTRACE)"));
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t limit) {
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegular(path));
  return ReadWhole(fd.get(), path, limit);
}

absl::StatusOr<std::string> ReadWhole(int fd, const std::string& path, size_t limit) {
  ASSIGN_OR_RETURN(std::string contents, ReadUpTo(fd, path, limit));
  if (contents.size() > limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat("read ", path, ": longer than ", limit, " bytes"));
  }
  return contents;
}

absl::StatusOr<std::string> HeadOfFile(const std::string& path, size_t limit) {
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegular(path));
  ASSIGN_OR_RETURN(std::string contents, ReadUpTo(fd.get(), path, limit));
  contents.resize(std::min(contents.size(), limit));
  return contents;
}

absl::StatusOr<std::string> PartOfFile(const std::string& path, const FilePart& part) {
  ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegular(path));
  std::string contents(part.bytes, '\0');
  size_t done = 0;
  while (done < part.bytes) {
    const ssize_t got = ::pread(fd.get(), contents.data() + done, part.bytes - done,
                                static_cast<off_t>(part.offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "read", path);
    if (got == 0) return absl::NotFoundError(absl::StrCat("read ", path, ": it ends before"));
    done += static_cast<size_t>(got);
  }
  return contents;
}

std::optional<uint64_t> ReadNumber(const std::string& path) {
  auto text = ReadWholeFile(path, 256);
  uint64_t value = 0;
  if (!text.ok() || !absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &value))
    return std::nullopt;
  return value;
}

}  // namespace perfd::agent
