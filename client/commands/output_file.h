// client/commands/output_file.h - a file that perfctl writes because its user named it.
//
// Shape    the whole file or, where it did not exist before, none.
// Errors   kAlreadyExists (kKeep), kPermissionDenied, kFailedPrecondition (no such directory, or the path is one); other
//          errors of the system kUnknown. Each names the path and what to change.
#ifndef CLIENT_COMMANDS_OUTPUT_FILE_H_
#define CLIENT_COMMANDS_OUTPUT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace perfd::client {

enum class IfThere { kKeep, kReplace };

absl::Status WriteOutputFile(const std::string& path, absl::string_view bytes, IfThere if_there);

}  // namespace perfd::client

#endif  // CLIENT_COMMANDS_OUTPUT_FILE_H_
