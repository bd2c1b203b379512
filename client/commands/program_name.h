// client/commands/program_name.h - the name this client was installed under: sites may choose it (docs/security.md).
//
// Shape    texts of the program say "perfctl"; Named() puts the real name there. For our own texts only, never for what
//          users or the daemon wrote.
// Threads  thread-safe (pure).
#ifndef CLIENT_COMMANDS_PROGRAM_NAME_H_
#define CLIENT_COMMANDS_PROGRAM_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace perfd::client {

inline constexpr char kProgramName[] = "perfctl";

// The base name of argv[0]; kProgramName when that is no plain word (letters, digits, '.', '_', '-').
std::string ProgramName(absl::string_view argv0);

std::string Named(absl::string_view text, absl::string_view program);

}  // namespace perfd::client

#endif  // CLIENT_COMMANDS_PROGRAM_NAME_H_
