// perfctl loops: the loops of a profile, or one of them down to ranks and threads.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "client/commands/command_table.h"
#include "client/render/loop_text.h"
#include "client/render/verdict_text.h"
#include "core/base/status_macros.h"
#include "core/json/report_json.h"
#include "core/json/status_json.h"
#include "core/json/verdict_json.h"

namespace perfd::client {
namespace {

struct LoopsOptions {
  std::string id;
  std::string loop;
  std::optional<int32_t> rank;
  std::string variant;
};

Json LoopToJson(const Report& report, const ReportRow& row) {
  Json json = RowToJson(row);
  const LoopVerdict* verdict = FindVerdict(report, row.id);
  json["verdict"] = verdict == nullptr ? Json(nullptr) : VerdictToJson(*verdict);
  return json;
}

absl::StatusOr<std::string> LoopText(const Report& report, const ReportRow& row,
                                     const LoopsOptions& options, const TextStyle& style) {
  std::string text = RenderLoop(row, style);
  const LoopVerdict* verdict = FindVerdict(report, row.id);
  if (verdict == nullptr) {
    if (!options.rank.has_value() && options.variant.empty()) return text;
    return absl::NotFoundError("no variant of this loop was measured, nor was it refused");
  }
  ASSIGN_OR_RETURN(const std::string measured,
                   RenderVerdict(*verdict, {style, options.rank, options.variant}));
  return text + "\n" + measured;
}

absl::StatusOr<ExitCode> RunLoops(Terminal& terminal, DaemonClient& daemon,
                                  const LoopsOptions& options) {
  ASSIGN_OR_RETURN(const Report report, daemon.GetReport(options.id));
  if (!options.loop.empty()) {
    ASSIGN_OR_RETURN(const ReportRow* row, FindRow(report, options.loop));
    if (terminal.json) {
      terminal.out << JsonLine(LoopToJson(report, *row));
      return ExitCodeOf(report.status);
    }
    ASSIGN_OR_RETURN(const std::string text, LoopText(report, *row, options, terminal.style));
    terminal.out << text;
    return ExitCodeOf(report.status);
  }
  if (!terminal.json) {
    terminal.out << RenderLoopList(report, terminal.style);
    return ExitCodeOf(report.status);
  }
  Json loops = Json::array();
  for (const ReportRow& row : report.loops) {
    loops.push_back(RowToJson(row));
    loops.back()["number"] = loops.size();
  }
  terminal.out << JsonLine({{"id", report.status.id}, {"loops", loops}});
  return ExitCodeOf(report.status);
}

CommandRun DefineLoops(CLI::App& app) {
  auto options = std::make_shared<LoopsOptions>();  // shared by the parser and the command
  app.add_option("ID", options->id, kIdHelp)->required();
  auto* loop = app.add_option("--loop", options->loop,
                              "Only this loop, per rank and thread: its number in the report (3 or "
                              "#3) or the beginning of its id");
  app.add_option("--rank", options->rank, "With --loop: down to the threads of this rank")
      ->needs(loop);
  app.add_option("--variant", options->variant,
                 "With --loop: the assembly of this variant beside the loop's, e.g. LS")
      ->needs(loop);
  return [options](Terminal& terminal) {
    return WithDaemon(terminal,
                      [&](DaemonClient& daemon) { return RunLoops(terminal, daemon, *options); });
  };
}

}  // namespace

CommandEntry LoopsCommand() {
  return {"loops", "List loops; drill down into one",
          R"(EXAMPLES
  perfctl loops last
  perfctl loops last --loop 1
  perfctl loops last --loop 3fa9c2d1
  perfctl loops last --loop 3fa9c2d1 --rank 0 --variant LS

EXIT CODES
  0 ok   2 usage or ambiguous loop   3 no such profile, loop, rank or variant   4 not permitted
  8 partial or cancelled   1 failed)",
          DefineLoops};
}

}  // namespace perfd::client
