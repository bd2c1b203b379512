// perfctl status: where one profile stands.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "client/commands/command_table.h"
#include "client/render/status_json.h"
#include "client/render/status_text.h"
#include "core/base/status_macros.h"

namespace perfd {
namespace {

CommandRun Define(CLI::App& app) {
  auto id = std::make_shared<std::string>();  // shared by the parser and the command
  app.add_option("ID", *id, kIdHelp)->required();
  return [id](Terminal& terminal) {
    return WithDaemon(terminal, [&](DaemonClient& daemon) -> absl::StatusOr<ExitCode> {
      ASSIGN_OR_RETURN(const ProfileStatus status, daemon.GetProfile(*id));
      terminal.out << (terminal.json ? JsonLine(StatusToJson(status))
                                     : RenderStatus(status, terminal.style));
      return ExitCode::kOk;
    });
  };
}

}  // namespace

CommandEntry StatusCommand() {
  return {"status", "Show where a profile stands",
          R"(EXAMPLES
  perfctl status last
  perfctl status p-000042 --json

EXIT CODES
  0 ok, whatever the state   1 daemon not reachable   2 usage   3 no such profile
  4 not permitted)",
          Define};
}

}  // namespace perfd
