// core/service/trusted_file.h - reads a file that decides whom we trust, obey or turn away.
//
// Errors   kNotFound, kPermissionDenied (also when others than root and we may write it), kInvalidArgument (no regular file).
// Threads  thread-safe. A pipe in its place does not stop it.
#ifndef CORE_SERVICE_TRUSTED_FILE_H_
#define CORE_SERVICE_TRUSTED_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace perfd {

// At most one byte more than `most_bytes`, which shows that the file is too large.
absl::StatusOr<std::string> ReadTrustedFile(const std::string& path, size_t most_bytes);

}  // namespace perfd

#endif  // CORE_SERVICE_TRUSTED_FILE_H_
