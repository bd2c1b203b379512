#include "core/analysis/jobs/job_line.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "core/analysis/added_wall.h"

namespace perfd {
namespace {

constexpr size_t kMaxPlacement = 60;   // letters of "file:line" or a function
constexpr double kWorthSaying = 0.01;  // share of the samples that is missing

std::string Plain(absl::string_view text) {
  std::string out(text);
  for (char& c : out) {
    const bool fine = absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                      absl::string_view(" .,:;%()+-/_").find(c) != absl::string_view::npos;
    if (!fine) c = '_';
  }
  return out;
}

std::string Percent(double ratio) {
  const double percent = std::isfinite(ratio) ? ratio * 100 : 0;
  return absl::StrFormat("%.*f%%", percent > 0 && percent < 9.95 ? 1 : 0, percent);
}

// "triad.c:12"; the end of a long name, as that is what tells it from others.
std::string Place(const CodeLocation& at) {
  const SourceRange& source = at.source;
  std::string text = at.function;
  if (source.first_line > 0 && !source.file.empty())
    text = absl::StrCat(source.file.substr(source.file.rfind('/') + 1), ":", source.first_line);
  if (text.empty()) text = "unknown place";
  return text.size() <= kMaxPlacement ? text : text.substr(text.size() - kMaxPlacement);
}

// Of elapsed time where that is known.
double ShareOf(const ReportRow& row) {
  return row.wall.has_value() ? row.wall->share : row.share;
}

std::string HotText(const Report& report) {
  double share = 0;
  int count = 0;
  for (const ReportRow& row : report.loops) {
    if (!row.hot) continue;
    share += ShareOf(row);
    ++count;
  }
  if (count == 0) return "no hot loops";
  return absl::StrCat(Percent(share), " in ", count, count == 1 ? " loop" : " loops");
}

const ReportRow* RowOf(const Report& report, const std::string& id) {
  const auto it = std::find_if(report.loops.begin(), report.loops.end(),
                               [&](const ReportRow& row) { return row.id == id; });
  return it == report.loops.end() ? nullptr : &*it;
}

// " 0.97": the saturation that the verdict rests on.
std::string SaturationText(const LoopVerdict& verdict) {
  const char* variant = verdict.bound == Bound::kMemory       ? "LS"
                        : verdict.bound == Bound::kArithmetic ? "FP"
                                                              : "";
  for (const VariantSummary& summary : verdict.variants) {
    if (summary.variant == variant && summary.ranks.measured > 0)
      return absl::StrFormat(" %.2f", summary.saturation.value);
  }
  return "";
}

std::string GainText(const Gain& gain) {
  const std::string text = absl::StrCat("gain ", Percent(gain.of_job.value));
  if (gain.ranks.all()) return text;
  return absl::StrCat(text, " by ", gain.ranks.measured, " of ", gain.ranks.asked, " ranks");
}

// Verdicts come with the largest gain first.
std::string VerdictText(const Report& report) {
  for (const LoopVerdict& verdict : report.findings.verdicts) {
    const ReportRow* row = RowOf(report, verdict.loop_id);
    if (row == nullptr || verdict.bound == Bound::kUnknown) continue;
    std::string text =
        absl::StrCat(Place(row->location), " ", BoundName(verdict.bound), SaturationText(verdict));
    if (!verdict.gains.empty()) absl::StrAppend(&text, " (", GainText(verdict.gains.front()), ")");
    return text;
  }
  if (report.loops.empty()) return "";
  const ReportRow& heaviest = report.loops.front();
  return absl::StrCat(Place(heaviest.location), " ", Percent(ShareOf(heaviest)));
}

std::string FailureText(const ProfileStatus& status) {
  for (const Notice& notice : status.notices) {
    if (notice.severity == Notice::Severity::kError) return absl::StrCat("failed: ", notice.text);
  }
  return "failed";
}

std::string ResultText(const Report& report) {
  const ProfileState state = report.status.state;
  std::string text;
  if (state == ProfileState::kPartial) text = "partial: ";
  if (state == ProfileState::kCancelled) text = "cancelled: ";
  if (!IsFinal(state)) text = "so far: ";
  if (report.status.samples == 0 && report.loops.empty()) return text + "no samples";
  text += HotText(report);
  if (const std::string verdict = VerdictText(report); !verdict.empty())
    absl::StrAppend(&text, "; ", verdict);
  absl::StrAppend(&text, "; cost ", Percent(AddedWallOf(report).ratio));
  if (report.missing_ratio >= kWorthSaying)
    absl::StrAppend(&text, "; missing ", Percent(report.missing_ratio));
  return text;
}

}  // namespace

std::string JobLine(const Report& report) {
  const std::string result = report.status.state == ProfileState::kFailed
                                 ? FailureText(report.status)
                                 : ResultText(report);
  return Plain(absl::StrCat("perfd ", report.status.id, ": ", result)).substr(0, kMaxJobLine);
}

}  // namespace perfd
