// core/files/own_file.h - whose file is it, and who may write or read it: by the descriptor that is used afterwards.
//
// Errors   kPermissionDenied: somebody else's, or others may write it; kInvalidArgument: a key that others may read, with the
//          line that mends it; kFailedPrecondition: no regular file; else as FileStatus says.
// Threads  thread-safe.
// Source   fstat(2): what is opened is what is looked at.
#ifndef CORE_FILES_OWN_FILE_H_
#define CORE_FILES_OWN_FILE_H_

#include <sys/stat.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perfd {

// "operation path: text of errno", with the code that the error deserves.
absl::Status FileStatus(int error, absl::string_view operation, absl::string_view path);

// A regular file of root or ours that only its owner may write.
absl::Status CheckBelieved(const struct stat& facts, const std::string& path);
// ... that nobody but its owner may read, as a key must be; its owner does not matter.
absl::Status CheckKey(const struct stat& facts, const std::string& path);

// All that the descriptor has to give; kOutOfRange: more than `limit` bytes.
absl::StatusOr<std::string> ReadAll(int fd, size_t limit, const std::string& path);
// All of a regular file; links are followed.
absl::StatusOr<std::string> ReadBoundedFile(const std::string& path, size_t limit);
// The same of a private key.
absl::StatusOr<std::string> ReadKeyFile(const std::string& path, size_t limit);

}  // namespace perfd

#endif  // CORE_FILES_OWN_FILE_H_
