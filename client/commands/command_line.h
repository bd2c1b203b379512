// client/commands/command_line.h - from arguments to the exit code of perfctl.
//
// Shape    parses, chooses the command, runs it on the terminal given. Opens nothing itself.
// Errors   kUsage for anything the parser refuses, as text or as a JSON object like every other error.
#ifndef CLIENT_COMMANDS_COMMAND_LINE_H_
#define CLIENT_COMMANDS_COMMAND_LINE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/commands/exit_code.h"
#include "client/commands/terminal.h"
#include "core/dial/dial.h"

namespace perfd::client {

// How to reach a daemon once the flags are known.
using Connector =
    std::function<absl::StatusOr<std::unique_ptr<DaemonClient>>(const DialOptions&, VersionCheck)>;

// `arguments` without the program's name. `default_address`: $PERFD_ADDRESS, or empty.
ExitCode RunCommandLine(const std::vector<std::string>& arguments,
                        const std::string& default_address, const Connector& connector,
                        Terminal& terminal);

}  // namespace perfd::client

#endif  // CLIENT_COMMANDS_COMMAND_LINE_H_
