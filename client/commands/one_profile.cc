#include "client/commands/one_profile.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "core/base/status_macros.h"
#include "core/json/status_json.h"

namespace perfd::client {

CommandRun DefineOneProfile(CLI::App& app, AskOneProfile ask, ShowStatus show) {
  auto id = std::make_shared<std::string>();  // shared by the parser and the command
  app.add_option("ID", *id, kIdHelp)->required();
  return [id, ask, show](Terminal& terminal) {
    return WithDaemon(terminal, [&](DaemonClient& daemon) -> absl::StatusOr<ExitCode> {
      ASSIGN_OR_RETURN(const ProfileStatus status, (daemon.*ask)(*id));
      terminal.out << (terminal.json ? JsonLine(StatusToJson(status))
                                     : show(status, terminal.style));
      return ExitCode::kOk;
    });
  };
}

}  // namespace perfd::client
