// perfctl history: one program over many profiles: which loop got slower, and since when.
#include "core/analysis/jobs/history.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "client/commands/command_table.h"
#include "client/commands/history/archive_reader.h"
#include "client/render/history/csv.h"
#include "client/render/history/text.h"
#include "core/base/status_macros.h"
#include "core/json/history_json.h"
#include "core/json/status_json.h"

namespace perfd::client {
namespace {

struct HistoryOptions {
  std::string program;
  std::string archive;
  std::string loop;
  int limit = 30;
  size_t top = 12;
  bool csv = false;
};

absl::StatusOr<ExitCode> Print(Terminal& terminal, const ProgramHistory& history,
                               const HistoryOptions& options) {
  std::vector<LoopSeries> series = LoopsOverTime(history.profiles);
  const LoopSeries* one = nullptr;
  if (!options.loop.empty()) {
    ASSIGN_OR_RETURN(one, FindSeries(series, options.loop));
  }
  if (terminal.json || options.csv) {
    const std::vector<LoopSeries> chosen =
        one == nullptr ? std::move(series) : std::vector<LoopSeries>{*one};
    terminal.out << (options.csv ? RenderHistoryCsv(history, chosen)
                                 : JsonLine(HistoryToJson(history, chosen)));
  } else if (one != nullptr) {
    terminal.out << RenderLoopHistory(history, *one, terminal.style);
  } else {
    terminal.out << RenderHistory(history, series, {terminal.style, options.top});
  }
  return ExitCode::kOk;
}

ExitCode Run(Terminal& terminal, const HistoryOptions& options) {
  if (options.archive.empty()) {
    return WithDaemon(terminal, [&](DaemonClient& daemon) -> absl::StatusOr<ExitCode> {
      ASSIGN_OR_RETURN(const ProgramHistory history,
                       daemon.GetHistory(options.program, options.limit));
      return Print(terminal, history, options);
    });
  }
  const absl::StatusOr<ProgramHistory> history =
      ReadArchive(options.archive, options.program, static_cast<size_t>(options.limit));
  if (!history.ok()) return Fail(terminal, history.status());
  const absl::StatusOr<ExitCode> printed = Print(terminal, *history, options);
  return printed.ok() ? *printed : Fail(terminal, printed.status());
}

CommandRun DefineHistory(CLI::App& app) {
  auto options = std::make_shared<HistoryOptions>();  // shared by the parser and the command
  app.add_option("PROGRAM", options->program,
                 "Base name of the executable (default: that of the newest profile)");
  app.add_option(
      "--loop", options->loop,
      "Only this loop, profile by profile: the beginning of its id, or part of its function");
  app.add_option("--archive", options->archive,
                 "Read the reports in this folder (perfd --archive) instead of asking perfd")
      ->type_name("FILE");
  app.add_option("--limit", options->limit, "At most so many profiles, the newest (default 30)")
      ->check(CLI::Range(1, 200));
  app.add_option("--top", options->top, "Steady loops shown, 0: all (default 12)")
      ->check(CLI::Range(0, 100000));
  app.add_flag("--csv", options->csv, "A line for each loop in each profile as CSV");
  return [options](Terminal& terminal) { return Run(terminal, *options); };
}

}  // namespace

CommandEntry HistoryCommand() {
  return {
      "history", "Compare the loops of one program over its profiles",
      R"(Loops are matched as by diff, from each profile to the next. A change is told when at least three
profiles on each side of it are clearly apart; what is compared is the time of an iteration where
variants measured it in enough profiles, else the share of the job's time.

EXAMPLES
  perfctl history
  perfctl history lulesh2.0 --limit 100
  perfctl history lulesh2.0 --loop CalcForce
  perfctl history --archive /var/lib/perfd/archive --csv > history.csv

EXIT CODES
  0 ok   1 failure   2 usage   3 no profile of the program)",
      DefineHistory};
}

}  // namespace perfd::client
