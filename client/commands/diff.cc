// perfctl diff: two profiles, loop by loop.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "client/commands/command_table.h"
#include "client/render/diff/report_diff.h"
#include "core/base/status_macros.h"
#include "core/json/status_json.h"

namespace perfd::client {
namespace {

struct DiffOptions {
  std::string a;
  std::string b;
};

absl::StatusOr<ExitCode> RunDiff(Terminal& terminal, DaemonClient& daemon,
                                 const DiffOptions& options) {
  ASSIGN_OR_RETURN(const Report a, daemon.GetReport(options.a));
  ASSIGN_OR_RETURN(const Report b, daemon.GetReport(options.b));
  terminal.out << (terminal.json ? JsonLine(DiffToJson(a, b)) : RenderDiff(a, b, terminal.style));
  return ExitCode::kOk;
}

CommandRun DefineDiff(CLI::App& app) {
  auto options = std::make_shared<DiffOptions>();  // shared by the parser and the command
  app.add_option("A", options->a, kIdHelp)->required();
  app.add_option("B", options->b, kIdHelp)->required();
  return [options](Terminal& terminal) {
    return WithDaemon(terminal,
                      [&](DaemonClient& daemon) { return RunDiff(terminal, daemon, *options); });
  };
}

}  // namespace

CommandEntry DiffCommand() {
  return {
      "diff", "Compare two profiles loop by loop",
      R"(Loops are matched by id; when the program was built again, by function and line. A change is
marked with ! only when the two 95 % intervals do not overlap. Where accesses to memory were sampled by the
same events, the time of loads beyond L2 is compared as well.

EXAMPLES
  perfctl diff p-000041 last

EXIT CODES
  0 ok   2 usage   3 no such profile   4 not permitted   1 anything else)",
      DefineDiff};
}

}  // namespace perfd::client
