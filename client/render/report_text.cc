#include "client/render/report_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/render/dry_run/dry_run.h"
#include "client/render/report_totals.h"
#include "client/render/saturation_text.h"
#include "client/render/status_text.h"
#include "client/render/text_table.h"
#include "core/analysis/loop_parts.h"
#include "core/base/clock.h"

namespace perfd::client {
namespace {

constexpr int kBarCells = 12;
constexpr size_t kShortIdDigits = 8;
// A loop that is there all the time is seen over less than this part of it once in thousands of reports.
constexpr uint64_t kLeastSamples = 50;
constexpr double kNearlyAll = 0.8;
constexpr double kLeastCalled = 0.001;

size_t Shown(size_t have, int top) {
  return top <= 0 ? have : std::min(have, static_cast<size_t>(top));
}

std::string WallText(const ReportRow& row) {
  return row.wall.has_value() ? Percent(row.wall->share) : "-";
}

// Empty for a loop that calls next to nothing.
std::string CalledText(const CalledShare& called) {
  if (called.share < kLeastCalled) return "";
  return absl::StrCat("and ", Percent(called.share), " ",
                      Interval95(called.interval.low, called.interval.high),
                      " in functions that it calls");
}

std::string LoopBlock(const Report& report, const std::vector<LoopPart>& parts, size_t index,
                      const ReportTextOptions& options) {
  const ReportRow& row = report.loops[index];
  const double heaviest = WithCalled(ShownShare(report.loops.front()));
  const TextStyle& style = options.style;
  const size_t room = static_cast<size_t>(std::max(style.width - 66, 20));
  const WallShare share = ShownShare(row);
  const std::string head = absl::StrFormat(
      "%c %-8s  %6s  %-14s %6s  %6s  %s  %s\n", row.hot ? '*' : ' ', ShortId(row), WallText(row),
      Interval95(share.interval.low, share.interval.high), Percent(share.inclusive),
      Percent(row.share), Bar(style, heaviest > 0 ? WithCalled(share) / heaviest : 0, kBarCells),
      Painted(style, Paint::kBold, CutEnd(Clean(LocationText(row)), room)));
  std::string where = absl::StrCat(
      PadRight(absl::StrCat("  #", index + 1), 12), Clean(SourceText(row.location.source)), "  ",
      Clean(BaseName(row.location.module_path)), "  ", LoopFactsText(row));
  const std::string part = LoopPartText(parts, index);
  absl::StrAppend(&where, part.empty() ? "" : ", ", part, "\n");
  std::string ranks =
      absl::StrCat("            rank min/median/max ", Seconds(row.rank_seconds.min), "/",
                   Seconds(row.rank_seconds.median), "/", Seconds(row.rank_seconds.max), " s");
  if (!row.worst_rank.empty()) absl::StrAppend(&ranks, "  worst ", Clean(row.worst_rank));
  absl::StrAppendFormat(&ranks, "  imbalance %.2f  threads %d", row.imbalance, row.thread_count);
  const std::string phase = PhaseText(report, row);
  if (!phase.empty()) absl::StrAppend(&ranks, "  ", phase);
  const std::string called = CalledText(share.called);
  if (!called.empty()) absl::StrAppend(&ranks, "\n            ", called);
  return absl::StrCat(head, where, ranks, "\n");
}

std::string ThreadLines(const ReportRow& row) {
  TextTable table(
      {{"NODE"}, {"RANK", true}, {"TID", true}, {"SAMPLES", true}, {"OF THREAD", true}});
  for (const ThreadShare& t : row.threads)
    table.Add({t.thread.node, absl::StrCat(t.thread.rank), absl::StrCat(t.thread.tid),
               absl::StrCat(t.samples), Percent(t.share_of_thread)});
  return table.empty() ? "" : table.Render();
}

std::string LoopSection(const Report& report, const ReportTextOptions& options) {
  if (report.loops.empty()) return "No time was seen in loops.\n";
  std::string text =
      Painted(options.style, Paint::kBold,
              "  LOOP        WALL  95% INTERVAL     INCL     CPU  BAR           FUNCTION");
  text += "\n";
  const size_t shown = Shown(report.loops.size(), options.top);
  const std::vector<LoopPart> parts = LoopParts(report.loops);
  for (size_t i = 0; i < shown; ++i) {
    text += LoopBlock(report, parts, i, options);
    if (options.threads) text += ThreadLines(report.loops[i]);
  }
  if (shown < report.loops.size())
    absl::StrAppend(&text, "  ... and ", report.loops.size() - shown, " more loops (--top 0)\n");
  return absl::StrCat(text, "  * hot set: loops that together hold ",
                      Percent(report.status.spec.hotspots.coverage_ratio), " of the loop time\n");
}

std::string PlainRows(const std::vector<ReportRow>& rows, size_t shown) {
  TextTable table({{"ID"},
                   {"WALL", true},
                   {"CPU", true},
                   {"95% INTERVAL"},
                   {"FUNCTION"},
                   {"SOURCE"},
                   {"MODULE"}});
  for (size_t i = 0; i < shown; ++i) {
    const ReportRow& row = rows[i];
    // Waiting is nobody's time: what is known of these loops is their CPU time.
    const bool waits = row.location.loop_kind == LoopKind::kWaiting || !row.wall.has_value();
    const Interval& interval = waits ? row.share_interval : row.wall->interval;
    table.Add({ShortId(row), waits ? "-" : WallText(row), Percent(row.share),
               Interval95(interval.low, interval.high), CutEnd(Clean(LocationText(row)), 40),
               CutFront(SourceText(row.location.source), 36), BaseName(row.location.module_path)});
  }
  std::string text = table.Render();
  if (shown < rows.size()) absl::StrAppend(&text, "  ... and ", rows.size() - shown, " more\n");
  return text;
}

// One rank's own view: shares are of that rank's time, heaviest first.
std::string RankSection(const Report& report, const ReportTextOptions& options) {
  struct Line {
    const ReportRow* row;
    const RankShare* part;
  };
  std::vector<Line> lines;
  for (const auto* rows : {&report.loops, &report.waiting, &report.functions}) {
    for (const ReportRow& row : *rows) {
      for (const RankShare& part : row.ranks) {
        if (part.rank == *options.rank) lines.push_back({&row, &part});
      }
    }
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return std::pair(a.part->wall_share_of_rank, a.part->share_of_rank) >
           std::pair(b.part->wall_share_of_rank, b.part->share_of_rank);
  });
  TextTable table({{"ID"},
                   {"WALL", true},
                   {"CPU", true},
                   {"CPU S", true},
                   {"SAMPLES", true},
                   {"KIND"},
                   {"FUNCTION"},
                   {"SOURCE"}});
  const size_t shown = Shown(lines.size(), options.top);
  for (size_t i = 0; i < shown; ++i) {
    const ReportRow& row = *lines[i].row;
    const bool waiting = row.location.loop_kind == LoopKind::kWaiting;
    const bool wall = row.wall.has_value() && !waiting;
    table.Add({ShortId(row), wall ? Percent(lines[i].part->wall_share_of_rank) : "-",
               Percent(lines[i].part->share_of_rank), Seconds(lines[i].part->seconds),
               absl::StrCat(lines[i].part->samples),
               waiting                         ? "waiting"
               : row.location.loop.has_value() ? "loop"
                                               : "function",
               CutEnd(Clean(LocationText(row)), 40),
               CutFront(SourceText(row.location.source), 36)});
  }
  return absl::StrCat("Rank ", *options.rank, " (shares of this rank's own time)\n",
                      table.Render());
}

std::string Title(const Report& report, const TextStyle& style) {
  const ProfileStatus& status = report.status;
  std::string text = absl::StrCat("Profile ", Clean(status.id));
  if (!status.name.empty()) absl::StrAppend(&text, " \"", Clean(status.name), "\"");
  absl::StrAppend(&text, "  ", ProfileStateName(status.state));
  absl::StrAppend(&text, "  ", report.ranks.size(), report.ranks.size() == 1 ? " rank" : " ranks",
                  " on ", report.nodes.size(), report.nodes.size() == 1 ? " node" : " nodes");
  text = Painted(style, Paint::kBold, text) + "\n";
  if (!status.spec.until_known || status.course.end == EndReason::kNone) return text;
  // Of a job without a sample there is no first one.
  const int64_t begun_ns =
      status.started_unix_ns != 0 ? status.started_unix_ns : status.submitted_unix_ns;
  const int64_t lasted_s = (status.finished_unix_ns - begun_ns) / kNsPerSecond;
  return absl::StrCat(text, "Ended after ", lasted_s, " s: ", EndText(status.course.end), "\n");
}

}  // namespace

std::string PhaseText(const Report& report, const ReportRow& row) {
  int64_t covered_ns = 0;
  for (const NodeCoverage& node : report.nodes) covered_ns = std::max(covered_ns, node.covered_ns);
  const auto seen = static_cast<double>(row.seen.last_ns - row.seen.first_ns);
  const auto covered = static_cast<double>(covered_ns);
  if (row.seen.last_ns <= 0 || row.samples < kLeastSamples || seen >= kNearlyAll * covered)
    return "";
  return absl::StrFormat(
      "seen from %.0f s to %.0f s of %.0f s", static_cast<double>(row.seen.first_ns) / kNsPerSecond,
      static_cast<double>(row.seen.last_ns) / kNsPerSecond, covered / kNsPerSecond);
}

WallShare ShownShare(const ReportRow& row) {
  return row.wall.value_or(
      WallShare{row.share, row.share_interval, row.inclusive_share, row.called});
}

double WithCalled(const WallShare& share) {
  return std::min(1.0, share.share + share.called.share);
}

std::string ShortId(const ReportRow& row) {
  return Clean(row.id.substr(0, kShortIdDigits));
}

std::string SourceText(const SourceRange& source) {
  if (source.file.empty()) return "?";
  std::string file = BaseName(source.file);
  if (source.first_line <= 0) return file;
  if (source.last_line <= source.first_line) return absl::StrCat(file, ":", source.first_line);
  return absl::StrCat(file, ":", source.first_line, "-", source.last_line);
}

std::string LocationText(const ReportRow& row) {
  if (row.location.kernel_cause != KernelCause::kUnknown) {
    const std::string& caller = row.location.kernel_caller;
    return absl::StrCat("[kernel] ", KernelCauseText(row.location.kernel_cause),
                        caller.empty() ? "" : ", by ", caller);
  }
  std::string text = row.location.function.empty() ? "?" : row.location.function;
  if (row.location.loop.has_value() && !row.location.loop->inlined_from.empty())
    absl::StrAppend(&text, " (inlined ", row.location.loop->inlined_from, ")");
  return text;
}

std::string LoopFactsText(const ReportRow& row) {
  if (!row.location.loop.has_value()) return "no loop";
  std::string text = absl::StrCat("depth ", row.location.loop->depth);
  absl::StrAppend(&text, row.location.loop->innermost ? ", innermost" : ", outer");
  if (row.location.loop->irreducible) absl::StrAppend(&text, ", irreducible");
  if (row.location.openmp == OpenMpKind::kOutlined) absl::StrAppend(&text, ", OpenMP");
  return text;
}

std::string RenderReport(const Report& report, const ReportTextOptions& options) {
  std::string text = Title(report, options.style) + "\n";
  if (options.rank.has_value()) {
    text += RankSection(report, options);
  } else {
    text += LoopSection(report, options);
    const std::string measured = report.status.spec.dry_run
                                     ? RenderDryRun(report, options.style)
                                     : RenderSaturations(report, options.style, options.top);
    if (!measured.empty()) absl::StrAppend(&text, "\n", measured);
    if (!report.functions.empty())
      absl::StrAppend(&text, "\nOutside loops\n",
                      PlainRows(report.functions, std::min<size_t>(report.functions.size(), 5)));
    if (!report.waiting.empty())
      absl::StrAppend(&text, "\nWaiting loops of MPI, OpenMP and C runtimes\n",
                      PlainRows(report.waiting, std::min<size_t>(report.waiting.size(), 5)));
  }
  absl::StrAppend(&text, "\n", RenderTotals(report, options.style));
  absl::StrAppend(&text, "\n", RenderRanks(report));
  absl::StrAppend(&text, "\n", RenderAccounting(report));
  absl::StrAppend(&text, RenderNotices(report.status.notices, options.style));
  return text;
}

}  // namespace perfd::client
