// perfctl nodes: which agents are there.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <ostream>

#include "client/commands/command_table.h"
#include "client/render/nodes_text.h"
#include "core/base/status_macros.h"
#include "core/json/status_json.h"

namespace perfd::client {
namespace {

CommandRun DefineNodes(CLI::App&) {
  return [](Terminal& terminal) {
    return WithDaemon(terminal, [&](DaemonClient& daemon) -> absl::StatusOr<ExitCode> {
      ASSIGN_OR_RETURN(const auto nodes, daemon.ListNodes());
      terminal.out << (terminal.json ? JsonLine(NodesToJson(nodes))
                                     : RenderNodes(nodes, terminal.clock.UnixNs()));
      return ExitCode::kOk;
    });
  };
}

}  // namespace

CommandEntry NodesCommand() {
  return {"nodes", "List nodes with an agent",
          R"(Connected nodes, and those seen in the last day.

EXAMPLES
  perfctl nodes
  perfctl nodes --json

EXIT CODES
  0 ok   1 daemon not reachable   2 usage)",
          DefineNodes};
}

}  // namespace perfd::client
