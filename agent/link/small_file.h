// agent/link/small_file.h - atomically replaces small files.
//
// Errors   kNotFound, kPermissionDenied, kResourceExhausted (disk full), kInternal; the text names the path. Reading:
//          agent/procfs/read_file.h.
#ifndef AGENT_LINK_SMALL_FILE_H_
#define AGENT_LINK_SMALL_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace perfd::agent {

// Writes beside the file, then renames: readers see the old or the new contents, never a part.
absl::Status ReplaceSmallFile(const std::string& path, absl::string_view contents);

}  // namespace perfd::agent

#endif  // AGENT_LINK_SMALL_FILE_H_
