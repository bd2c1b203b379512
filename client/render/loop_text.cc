#include "client/render/loop_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "client/render/report_text.h"
#include "client/render/text_table.h"

namespace perfd::client {

namespace {

constexpr size_t kMostNumberDigits = 7;  // ids have more
constexpr size_t kNeverAnId =
    3;  // so few digits are the number of a loop, though an id may begin with them

// 0: the text is no number.
size_t ParseNumber(absl::string_view text) {
  absl::ConsumePrefix(&text, "#");
  const bool digits = std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  size_t number = 0;
  return digits && text.size() <= kMostNumberDigits && absl::SimpleAtoi(text, &number) ? number : 0;
}

absl::Status NoSuchLoop(const Report& report, absl::string_view text) {
  const std::string have =
      report.loops.empty() ? "no time was seen in loops"
                           : absl::StrCat("its loops have the numbers 1 to ", report.loops.size(),
                                          " and the ids of `perfctl loops ", report.status.id, "`");
  return absl::NotFoundError(
      absl::StrCat("profile ", report.status.id, " has no loop '", Clean(text), "': ", have));
}

}  // namespace

absl::StatusOr<const ReportRow*> FindRow(const Report& report, absl::string_view text) {
  const size_t number = ParseNumber(text);
  if (number > 0 && number <= report.loops.size()) return &report.loops[number - 1];
  if (number > 0 && text.size() <= kNeverAnId) return NoSuchLoop(report, text);
  const ReportRow* found = nullptr;
  for (const auto* rows : {&report.loops, &report.waiting, &report.functions}) {
    for (const ReportRow& row : *rows) {
      if (row.id == text) return &row;
      if (text.empty() || !absl::StartsWith(row.id, text)) continue;
      if (found != nullptr)
        return absl::InvalidArgumentError(
            absl::StrCat("loop id '", Clean(text), "' is not unique; give more digits"));
      found = &row;
    }
  }
  if (found != nullptr) return found;
  return NoSuchLoop(report, text);
}

std::string RenderLoop(const ReportRow& row, const TextStyle& style) {
  const CodeLocation& at = row.location;
  std::string text = Painted(style, Paint::kBold, absl::StrCat("Loop ", Clean(row.id))) + "\n";
  absl::StrAppend(&text, "  function   ", Clean(LocationText(row)), "\n  source     ",
                  Clean(at.source.file), at.source.file.empty() ? "?" : "", " (",
                  Clean(SourceText(at.source)), ")\n  module     ", Clean(at.module_path), " (",
                  Clean(at.module_id), ")\n");
  if (at.loop.has_value()) {
    absl::StrAppendFormat(&text, "  loop       %s; header 0x%x, %d blocks, %d instructions",
                          LoopFactsText(row), at.loop->header, at.loop->block_count,
                          at.loop->instruction_count);
    for (const CodeRange& part : at.loop->further_parts)
      absl::StrAppendFormat(&text, ", also at 0x%x", part.low);
    text += "\n";
  }
  const std::string wall =
      row.wall.has_value()
          ? absl::StrFormat("%s %s, with inner loops and calls %s", Percent(row.wall->share),
                            Interval95(row.wall->interval.low, row.wall->interval.high),
                            Percent(row.wall->inclusive))
          : "-";
  absl::StrAppendFormat(
      &text, "  wall share %s\n  CPU share  %s %s, with inner loops and calls %s, %d samples\n",
      wall, Percent(row.share), Interval95(row.share_interval.low, row.share_interval.high),
      Percent(row.inclusive_share), row.samples);
  absl::StrAppendFormat(&text, "  imbalance  %.2f (max / mean)%s%s\n\n", row.imbalance,
                        row.worst_rank.empty() ? "" : ", worst ", Clean(row.worst_rank));
  TextTable ranks(
      {{"RANK", true}, {"NODE"}, {"SECONDS", true}, {"OF RANK", true}, {"SAMPLES", true}});
  for (const RankShare& r : row.ranks)
    ranks.Add({absl::StrCat(r.rank), r.node, Seconds(r.seconds), Percent(r.share_of_rank),
               absl::StrCat(r.samples)});
  TextTable threads({{"RANK", true},
                     {"NODE"},
                     {"PID", true},
                     {"TID", true},
                     {"OF THREAD", true},
                     {"SAMPLES", true}});
  for (const ThreadShare& t : row.threads)
    threads.Add({absl::StrCat(t.thread.rank), t.thread.node, absl::StrCat(t.thread.pid),
                 absl::StrCat(t.thread.tid), Percent(t.share_of_thread), absl::StrCat(t.samples)});
  return absl::StrCat(text, ranks.Render(), "\n", threads.Render());
}

std::string RenderLoopList(const Report& report, const TextStyle& style) {
  if (report.loops.empty()) return "No time was seen in loops.\n";
  TextTable table({{"#", true},
                   {"LOOP"},
                   {"WALL", true},
                   {"CPU", true},
                   {"95% INTERVAL"},
                   {"CALLED", true},
                   {"IMBAL", true},
                   {"FUNCTION"},
                   {"SOURCE"},
                   {"FACTS"}});
  const size_t room = static_cast<size_t>(std::max(style.width / 3, 20));
  size_t number = 0;
  for (const ReportRow& row : report.loops)
    table.Add({absl::StrCat(++number), ShortId(row),
               row.wall.has_value() ? Percent(row.wall->share) : "-", Percent(row.share),
               Interval95(ShownShare(row).interval.low, ShownShare(row).interval.high),
               Percent(ShownShare(row).called.share), absl::StrFormat("%.2f", row.imbalance),
               CutEnd(Clean(LocationText(row)), room),
               CutFront(SourceText(row.location.source), room), LoopFactsText(row)});
  return table.Render();
}

}  // namespace perfd::client
