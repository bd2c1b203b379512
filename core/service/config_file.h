// core/service/config_file.h - a configuration file of a daemon, read as one that decides what a privileged program does.
//
// Errors   kNotFound, kPermissionDenied (cannot be read; or others than root and we may change it), kInvalidArgument (no
//          regular file, too large, or errors in it, each with the file's name, line and column).
// Threads  thread-compatible.
#ifndef CORE_SERVICE_CONFIG_FILE_H_
#define CORE_SERVICE_CONFIG_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "core/spec/config_table.h"

namespace perfd {

// On an error fields may be half read: give a table of a copy.
absl::Status ReadConfigFile(const std::string& path, const ConfigTable& table);

}  // namespace perfd

#endif  // CORE_SERVICE_CONFIG_FILE_H_
