// client/commands/history/archive_reader.h - the history of a program from a folder of reports as JSON, without a daemon.
//
// Shape    every *.json below the folder, newest name first (an archive's folders are days): until there are enough of the
//          program. Files that are no report are counted, and otherwise as if they were not there.
// Limits   kMaxFiles, kMaxFileBytes, kMaxDepth folders deep; no links are followed.
// Errors   kNotFound: no folder, or no profile of the program in it.
#ifndef CLIENT_COMMANDS_HISTORY_ARCHIVE_READER_H_
#define CLIENT_COMMANDS_HISTORY_ARCHIVE_READER_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "core/model/history.h"

namespace perfd::client {

inline constexpr size_t kMaxArchiveFiles = 1'000'000;
inline constexpr size_t kMaxArchiveFileBytes = size_t{256} << 20;
inline constexpr int kMaxArchiveDepth = 4;

// `command` empty: that of the newest profile.
absl::StatusOr<ProgramHistory> ReadArchive(const std::string& folder, std::string command,
                                           size_t limit);

}  // namespace perfd::client

#endif  // CLIENT_COMMANDS_HISTORY_ARCHIVE_READER_H_
