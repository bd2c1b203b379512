// core/base/log_file.h - where the log goes and how much of it: what may change while the program runs.
//
// Shape    after InitLog. The log goes to standard error (the journal, for a service) until LogToFile is called.
// Errors   LogToFile: kPermissionDenied, kNotFound (the folder), kInvalidArgument (not a regular file, a symbolic link);
//          the log then goes on where it went before. A line that cannot be written to the file (disk full) goes to
//          standard error instead.
// Threads  thread-safe, also while other threads log: no line is lost or torn.
#ifndef CORE_BASE_LOG_FILE_H_
#define CORE_BASE_LOG_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "core/base/log.h"

namespace perfd {

void SetLogLevel(LogLevel lowest);

// Appends to the file, which is opened anew even when it was in use already: after a rotation the name means another
// file. Empty: back to standard error.
absl::Status LogToFile(const std::string& path);

}  // namespace perfd

#endif  // CORE_BASE_LOG_FILE_H_
