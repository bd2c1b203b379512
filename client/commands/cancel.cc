// perfctl cancel: end a profile.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "client/commands/command_table.h"
#include "client/render/status_json.h"
#include "core/base/status_macros.h"

namespace perfd {
namespace {

CommandRun Define(CLI::App& app) {
  auto id = std::make_shared<std::string>();  // shared by the parser and the command
  app.add_option("ID", *id, kIdHelp)->required();
  return [id](Terminal& terminal) {
    return WithDaemon(terminal, [&](DaemonClient& daemon) -> absl::StatusOr<ExitCode> {
      ASSIGN_OR_RETURN(const ProfileStatus status, daemon.Cancel(*id));
      terminal.out << (terminal.json
                           ? JsonLine(StatusToJson(status))
                           : absl::StrCat(status.id, " ", ProfileStateName(status.state), "\n"));
      return ExitCode::kOk;
    });
  };
}

}  // namespace

CommandEntry CancelCommand() {
  return {"cancel", "End a profile; what was measured is kept",
          R"(EXAMPLES
  perfctl cancel last

EXIT CODES
  0 cancelled   1 it is already over   2 usage   3 no such profile   4 not permitted)",
          Define};
}

}  // namespace perfd
