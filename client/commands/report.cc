// perfctl report: the result, as table, JSON, CSV, folded stacks, pprof or HTML page.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "client/commands/command_table.h"
#include "client/commands/output_file.h"
#include "client/render/csv.h"
#include "client/render/folded.h"
#include "client/render/pprof.h"
#include "client/render/report_text.h"
#include "client/render/memory/report_memory.h"
#include "core/analysis/jobs/job_line.h"
#include "core/base/status_macros.h"
#include "core/json/report_json.h"
#include "core/json/status_json.h"
#include "core/page/render_html.h"

namespace perfd::client {
namespace {

struct ReportOptions {
  std::string id;
  bool csv = false;
  bool folded = false;
  std::string pprof;
  std::string html;
  bool line = false;
  bool url = false;
  bool force = false;
  std::optional<int32_t> rank;
  int top = 12;
  bool threads = false;
};

absl::Status WritePprof(Terminal& terminal, const Report& report, const std::string& file) {
  ASSIGN_OR_RETURN(const std::string bytes, RenderPprof(report));
  if (file == "-") {
    terminal.out << bytes;
    return absl::OkStatus();
  }
  std::ofstream out(file, std::ios::binary);
  out << bytes << std::flush;
  if (!out.good())
    return absl::UnknownError(absl::StrCat("cannot write '", file, "': ", strerror(errno)));
  Remark(terminal,
         absl::StrCat("Wrote ", file, "; look at it with `go tool pprof -http=: ", file, "`."));
  return absl::OkStatus();
}

absl::Status WriteHtml(Terminal& terminal, const Report& report, const ReportOptions& options) {
  const std::string page = RenderHtml(report);
  if (options.html == "-") {
    terminal.out << page;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(
      WriteOutputFile(options.html, page, options.force ? IfThere::kReplace : IfThere::kKeep));
  Remark(terminal, absl::StrCat("Wrote ", options.html, " (", Bytes(page.size()),
                                "); open it in a browser, it needs nothing else."));
  return absl::OkStatus();
}

absl::Status Print(Terminal& terminal, const Report& report, const ReportOptions& options) {
  if (!options.pprof.empty()) return WritePprof(terminal, report, options.pprof);
  if (!options.html.empty()) return WriteHtml(terminal, report, options);
  if (options.line) {
    terminal.out << JobLine(report) << "\n";
  } else if (options.csv) {
    terminal.out << RenderCsv(report);
  } else if (options.folded) {
    terminal.out << RenderFolded(report);
  } else if (terminal.json) {
    terminal.out << JsonLine(ReportToJson(report));
  } else {
    terminal.out << RenderReport(report, {.style = terminal.style,
                                          .top = options.top,
                                          .threads = options.threads,
                                          .rank = options.rank});
    const std::string memory = RenderMemoryPlaces(report, kMemoryPlaces, terminal.style);
    if (!memory.empty()) terminal.out << "\n" << memory;
  }
  return absl::OkStatus();
}

bool HasRank(const Report& report, int32_t rank) {
  for (const RankSummary& summary : report.ranks) {
    if (summary.info.rank == rank) return true;
  }
  return false;
}

absl::StatusOr<ExitCode> PrintUrl(Terminal& terminal, DaemonClient& daemon, const std::string& id) {
  ASSIGN_OR_RETURN(const std::string url, daemon.GetReportUrl(id));
  terminal.out << (terminal.json ? JsonLine({{"url", url}}) : Clean(url) + "\n");
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunReport(Terminal& terminal, DaemonClient& daemon,
                                   const ReportOptions& options) {
  if (options.url) return PrintUrl(terminal, daemon, options.id);
  ASSIGN_OR_RETURN(const Report report, daemon.GetReport(options.id));
  if (options.rank.has_value() && !HasRank(report, *options.rank))
    return absl::NotFoundError(
        absl::StrCat("profile ", report.status.id, " has no rank ", *options.rank));
  RETURN_IF_ERROR(Print(terminal, report, options));
  if (!IsFinal(report.status.state))
    Remark(terminal,
           absl::StrCat("Profile ", report.status.id, " is still ",
                        ProfileStateName(report.status.state), ": these are the figures so far."));
  return ExitCodeOf(report.status);
}

CommandRun DefineReport(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();  // shared by the parser and the command
  app.add_option("ID", options->id, kIdHelp)->required();
  auto* csv = app.add_flag("--csv", options->csv, "Every row as CSV");
  auto* folded =
      app.add_flag("--folded", options->folded, "Folded stacks for flame graphs, us of CPU time");
  auto* pprof =
      app.add_option("--pprof", options->pprof, "Write a pprof file; - is standard output");
  auto* html = app.add_option("--html", options->html,
                              "Write one self-contained page for a browser; - is standard output");
  for (CLI::Option* file : {pprof, html}) file->type_name("FILE");
  app.add_flag("--force", options->force, "Write over a page that exists")->needs(html);
  auto* line = app.add_flag("--line", options->line,
                            "One line for a batch system's comment, at most 200 letters");
  auto* url = app.add_flag("--url", options->url,
                           "The link to the page that perfd serves; whoever has it may read it");
  auto* rank =
      app.add_option("--rank", options->rank, "Only this rank, with shares of its own time");
  app.add_option("--top", options->top, "Loops shown, 0: all (default 12)")
      ->check(CLI::Range(0, 100000));
  app.add_flag("--threads", options->threads, "Each thread's part of each loop");
  csv->excludes(folded)->excludes(pprof)->excludes(rank)->excludes(html);
  folded->excludes(pprof)->excludes(rank)->excludes(html);
  pprof->excludes(rank)->excludes(html);
  html->excludes(rank);
  for (CLI::Option* other : {csv, folded, pprof, html, rank, url}) line->excludes(other);
  for (CLI::Option* other : {csv, folded, pprof, html, rank}) url->excludes(other);
  return [options](Terminal& terminal) {
    return WithDaemon(terminal,
                      [&](DaemonClient& daemon) { return RunReport(terminal, daemon, *options); });
  };
}

}  // namespace

CommandEntry ReportCommand() {
  return {
      "report", "Show the result of a profile",
      R"help(Loops by share of the job's time with 95 % intervals, their ranks and threads, totals that
add up to 100 %, lost and dropped samples, the cost of the profile, and where figures came from.

EXAMPLES
  perfctl report last
  perfctl report p-000042 --rank 3 --top 0
  perfctl report last --folded | flamegraph.pl > flame.svg
  perfctl report last --pprof out.pb.gz
  perfctl report last --html report.html
  perfctl report last --url
  perfctl report p-000042 --line      (for Slurm's AdminComment: docs/scheduler_hook.md)

EXIT CODES
  0 complete or still running   2 usage   3 no such profile or rank   4 not permitted
  8 partial or cancelled        1 failed)help",
      DefineReport};
}

}  // namespace perfd::client
