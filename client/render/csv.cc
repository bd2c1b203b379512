#include "client/render/csv.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/render/text_style.h"

namespace perfd::client {
namespace {

constexpr char kHeader[] =
    "kind,id,share,share_low,share_high,inclusive_share,hot,samples,function,file,first_line,"
    "last_line,module,build_id,depth,innermost,openmp,rank_min_seconds,rank_median_seconds,"
    "rank_max_seconds,worst_rank,imbalance,threads,wall_share,wall_share_low,wall_share_high,"
    "wall_inclusive_share,kernel_cause,kernel_caller,"
    "bound,sure,gain,gain_low,gain_high,gain_variant,gain_ranks,"
    "gain_ranks_asked,called_share,wall_called_share\n";

std::string Number(double value) {
  return absl::StrFormat("%.6g", value);
}

// What variants told of the loop; empty cells: they did not, or it has no name or no gain.
std::vector<std::string> VerdictFields(const LoopVerdict* verdict) {
  std::vector<std::string> fields(8);
  if (verdict == nullptr) return fields;
  if (verdict->bound != Bound::kUnknown) {
    fields[0] = BoundName(verdict->bound);
    fields[1] = verdict->sure ? "1" : "0";
  }
  if (verdict->gains.empty()) return fields;
  const Gain& gain = verdict->gains.front();
  fields[2] = Number(gain.of_job.value);
  fields[3] = Number(gain.of_job.low);
  fields[4] = Number(gain.of_job.high);
  fields[5] = CsvField(gain.variant);
  if (gain.ranks.asked == 0) return fields;
  fields[6] = absl::StrCat(gain.ranks.measured);
  fields[7] = absl::StrCat(gain.ranks.asked);
  return fields;
}

std::string Line(const char* kind, const ReportRow& row, const LoopVerdict* verdict) {
  const CodeLocation& at = row.location;
  const std::vector<std::string> fields = {
      kind,
      CsvField(row.id),
      Number(row.share),
      Number(row.share_interval.low),
      Number(row.share_interval.high),
      Number(row.inclusive_share),
      row.hot ? "1" : "0",
      absl::StrCat(row.samples),
      CsvField(at.function),
      CsvField(at.source.file),
      absl::StrCat(at.source.first_line),
      absl::StrCat(at.source.last_line),
      CsvField(at.module_path),
      CsvField(at.module_id),
      at.loop.has_value() ? absl::StrCat(at.loop->depth) : "",
      at.loop.has_value() ? (at.loop->innermost ? "1" : "0") : "",
      at.openmp == OpenMpKind::kOutlined ? "1" : "0",
      Number(row.rank_seconds.min),
      Number(row.rank_seconds.median),
      Number(row.rank_seconds.max),
      CsvField(row.worst_rank),
      Number(row.imbalance),
      absl::StrCat(row.thread_count),
      row.wall.has_value() ? Number(row.wall->share) : "",
      row.wall.has_value() ? Number(row.wall->interval.low) : "",
      row.wall.has_value() ? Number(row.wall->interval.high) : "",
      row.wall.has_value() ? Number(row.wall->inclusive) : "",
      at.category == Category::kKernel ? KernelCauseName(at.kernel_cause) : "",
      CsvField(at.kernel_caller)};
  const std::vector<std::string> called = {
      Number(row.called.share), row.wall.has_value() ? Number(row.wall->called.share) : ""};
  return absl::StrCat(absl::StrJoin(fields, ","), ",", absl::StrJoin(VerdictFields(verdict), ","),
                      ",", absl::StrJoin(called, ","), "\n");
}

const LoopVerdict* VerdictOf(const Report& report, const ReportRow& row) {
  const auto found =
      std::find_if(report.findings.verdicts.begin(), report.findings.verdicts.end(),
                   [&](const LoopVerdict& verdict) { return verdict.loop_id == row.id; });
  return found == report.findings.verdicts.end() ? nullptr : &*found;
}

}  // namespace

// Names come from binaries of strangers: no cell is a formula, which spreadsheets compute, and none moves a cursor.
std::string CsvField(absl::string_view unsafe) {
  std::string text = Clean(unsafe);
  const size_t first = text.find_first_not_of(' ');  // some spreadsheets take spaces off
  if (first != std::string::npos && absl::StrContains("=+-@", text[first])) text.insert(0, 1, '\'');
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field.push_back('"');
    field.push_back(c);
  }
  return field + "\"";
}

std::string RenderCsv(const Report& report) {
  std::string text = kHeader;
  for (const ReportRow& row : report.loops) text += Line("loop", row, VerdictOf(report, row));
  for (const ReportRow& row : report.waiting) text += Line("waiting", row, nullptr);
  for (const ReportRow& row : report.functions) text += Line("function", row, nullptr);
  return text;
}

}  // namespace perfd::client
