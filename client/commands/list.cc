// perfctl list: the profiles one may see.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "client/commands/command_table.h"
#include "client/render/status_text.h"
#include "core/base/status_macros.h"
#include "core/json/status_json.h"

namespace perfd::client {
namespace {

struct ListOptions {
  bool active = false;
  int limit = 50;
};

CommandRun DefineList(CLI::App& app) {
  auto options = std::make_shared<ListOptions>();  // shared by the parser and the command
  app.add_flag("--active", options->active, "Only profiles that are not over");
  app.add_option("--limit", options->limit, "At most so many, newest first (default 50)")
      ->check(CLI::Range(1, 1000));
  return [options](Terminal& terminal) {
    return WithDaemon(terminal, [&](DaemonClient& daemon) -> absl::StatusOr<ExitCode> {
      ASSIGN_OR_RETURN(const auto profiles, daemon.ListProfiles(options->active, options->limit));
      terminal.out << (terminal.json ? JsonLine(ProfilesToJson(profiles))
                                     : RenderProfileList(profiles, terminal.style));
      return ExitCode::kOk;
    });
  };
}

}  // namespace

CommandEntry ListCommand() {
  return {"list", "List profiles, newest first",
          R"(EXAMPLES
  perfctl list --active
  perfctl list --limit 5 --json

EXIT CODES
  0 ok   1 daemon not reachable   2 usage)",
          DefineList};
}

}  // namespace perfd::client
