// client/commands/command.h - the shape of a command, and what all commands do the same way.
#ifndef CLIENT_COMMANDS_COMMAND_H_
#define CLIENT_COMMANDS_COMMAND_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/commands/exit_code.h"
#include "client/commands/terminal.h"

namespace CLI {
class App;
}

namespace perfd::client {

using CommandRun = std::function<ExitCode(Terminal& terminal)>;

struct CommandEntry {
  const char* name;
  const char* summary;
  const char* help;  // examples and remarks, printed below the options
  // Declares options on `app`; the result runs the command with the values parsed into them.
  CommandRun (*define)(CLI::App& app);
};

// Prints the error (text or JSON object) on `err` and returns its exit code.
ExitCode Fail(Terminal& terminal, const absl::Status& status);
ExitCode Fail(Terminal& terminal, const absl::Status& status, ExitCode exit_code);

// Connects, runs `body`, reports its error.
ExitCode WithDaemon(Terminal& terminal,
                    const std::function<absl::StatusOr<ExitCode>(DaemonClient& daemon)>& body);

// A remark for people on `err`; silent with --json.
void Remark(Terminal& terminal, absl::string_view text);

inline constexpr char kIdHelp[] = "Profile: p-000042, a unique beginning of it, or last";

}  // namespace perfd::client

#endif  // CLIENT_COMMANDS_COMMAND_H_
