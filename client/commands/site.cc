// perfctl nodes and limits: which agents the site has, and what one may hold of perfd.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <ostream>

#include "client/commands/command_table.h"
#include "client/render/site/limits_text.h"
#include "client/render/site/nodes_text.h"
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

CommandRun DefineLimits(CLI::App&) {
  return [](Terminal& terminal) {
    return WithDaemon(terminal, [&](DaemonClient& daemon) -> absl::StatusOr<ExitCode> {
      absl::StatusOr<std::vector<LimitUse>> limits = daemon.ListLimits();
      if (absl::IsUnimplemented(limits.status()))
        return absl::UnimplementedError("this perfd does not tell its limits yet: update it");
      RETURN_IF_ERROR(limits.status());
      terminal.out << (terminal.json ? LimitsToJsonLine(*limits) : RenderLimits(*limits));
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

CommandEntry LimitsCommand() {
  return {
      "limits", "List perfd's limits, and how much of them is yours",
      R"(Limits are for each user, or for everyone together. REFUSED counts whoever was refused since perfd
began. Administrators see who holds most. What the keys mean: docs/limits.md.

EXAMPLES
  perfctl limits
  perfctl limits --json

EXIT CODES
  0 ok   1 daemon not reachable   2 usage)",
      DefineLimits};
}

}  // namespace perfd::client
