// agent/procfs/read_file.h - reads a whole small kernel file, bounded, never blocking.
//
// Units    limit in bytes; a longer file is an error, not a truncation, unless HeadOfFile is asked.
// Errors   kNotFound (ENOENT, ESRCH), kPermissionDenied (EACCES, EPERM), kResourceExhausted (over the limit),
//          kUnavailable (anything else).
// Source   open(2) O_NONBLOCK: a FIFO planted by a user must not stop the agent.
#ifndef AGENT_PROCFS_READ_FILE_H_
#define AGENT_PROCFS_READ_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perfd::agent {

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t limit);
absl::StatusOr<std::string> HeadOfFile(const std::string& path, size_t limit);
struct WholeFile {
  std::string path;
  size_t limit = 0;  // bytes
};
struct FilePart {
  uint64_t offset = 0;
  size_t bytes = 0;
};
// All of it, or an error.
absl::StatusOr<std::string> PartOfFile(const std::string& path, const FilePart& part);
// From an open descriptor, until its end.
absl::StatusOr<std::string> ReadWhole(int fd, const std::string& path, size_t limit);
// The number that is all of a small file; none for "max" and what cannot be read.
std::optional<uint64_t> ReadNumber(const std::string& path);

// FileStatus (core/files/own_file.h) of a file of another process, with what such a file needs.
absl::Status FileError(int error, absl::string_view operation, absl::string_view path);

}  // namespace perfd::agent

#endif  // AGENT_PROCFS_READ_FILE_H_
