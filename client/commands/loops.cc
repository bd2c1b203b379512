// perfctl loops: the loops of a profile, or one of them down to ranks and threads.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "client/commands/command_table.h"
#include "client/render/loop_text.h"
#include "client/render/report_json.h"
#include "client/render/status_json.h"
#include "core/base/status_macros.h"

namespace perfd {
namespace {

struct Options {
  std::string id;
  std::string loop;
};

absl::StatusOr<ExitCode> Run(Terminal& terminal, DaemonClient& daemon, const Options& options) {
  ASSIGN_OR_RETURN(const Report report, daemon.GetReport(options.id));
  if (!options.loop.empty()) {
    ASSIGN_OR_RETURN(const ReportRow* row, FindRow(report, options.loop));
    terminal.out << (terminal.json ? JsonLine(RowToJson(*row)) : RenderLoop(*row, terminal.style));
    return ExitCodeOf(report.status);
  }
  if (!terminal.json) {
    terminal.out << RenderLoopList(report, terminal.style);
    return ExitCodeOf(report.status);
  }
  Json loops = Json::array();
  for (const ReportRow& row : report.loops) loops.push_back(RowToJson(row));
  terminal.out << JsonLine({{"id", report.status.id}, {"loops", loops}});
  return ExitCodeOf(report.status);
}

CommandRun Define(CLI::App& app) {
  auto options = std::make_shared<Options>();  // shared by the parser and the command
  app.add_option("ID", options->id, kIdHelp)->required();
  app.add_option("--loop", options->loop,
                 "Only this loop (beginning of its id), per rank and thread");
  return [options](Terminal& terminal) {
    return WithDaemon(terminal,
                      [&](DaemonClient& daemon) { return Run(terminal, daemon, *options); });
  };
}

}  // namespace

CommandEntry LoopsCommand() {
  return {"loops", "List loops; drill down into one",
          R"(EXAMPLES
  perfctl loops last
  perfctl loops last --loop 3fa9c2d1

EXIT CODES
  0 ok   2 usage or ambiguous loop   3 no such profile or loop   4 not permitted
  8 partial or cancelled   1 failed)",
          Define};
}

}  // namespace perfd
