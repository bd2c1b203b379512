#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/render/dry_run/dry_run.h"
#include "client/render/report_text.h"
#include "core/spec/units.h"

namespace perfd::client {
namespace {

constexpr char kIndent[] = "            ";
constexpr size_t kShortIdDigits = 8;
constexpr size_t kRanksNamed = 4;

std::string Ms(int64_t ns) {
  return absl::StrFormat("%.1f ms", static_cast<double>(ns) / 1e6);
}

// "0.1%", or as many digits as a small share needs.
std::string SmallPercent(double ratio) {
  return ratio < 0.001 ? absl::StrFormat("%.4f%%", ratio * 100)
                       : absl::StrFormat("%.2f%%", ratio * 100);
}

std::string Range(const std::string& least, const std::string& most) {
  return least == most ? least : absl::StrCat(least, " to ", most);
}

std::string Disposition(const DryRunLoop& loop) {
  if (!loop.patched()) return "refused";
  if (loop.ranks_patched == loop.ranks_total) return "patched";
  return absl::StrCat("patched ", loop.ranks_patched, "/", loop.ranks_total);
}

// Where it holds; nothing when that is everywhere.
std::string Where(const DryRunRefusal& refusal, const DryRunLoop& loop) {
  if (refusal.refusal.count >= loop.ranks_total) return "";
  const size_t named = std::min(refusal.ranks.size(), kRanksNamed);
  if (named == 0) {
    return absl::StrCat(" (", refusal.refusal.count,
                        refusal.refusal.count == 1 ? " rank)" : " ranks)");
  }
  std::string text = absl::StrJoin(
      refusal.ranks.begin(), refusal.ranks.begin() + static_cast<std::ptrdiff_t>(named), ", ");
  if (refusal.refusal.count > named)
    absl::StrAppend(&text, " and ", refusal.refusal.count - named, " more");
  return absl::StrCat(" (", text, ")");
}

std::string Head(const Refusal& refusal) {
  std::string text = refusal.variant.empty() ? "refused" : absl::StrCat("not ", refusal.variant);
  if (refusal.instruction != 0) absl::StrAppend(&text, " at 0x", absl::Hex(refusal.instruction));
  return text;
}

// Variants that are refused for the same reason by the same ranks share a line.
std::string RefusalLines(const DryRunLoop& loop) {
  std::vector<std::pair<std::string, std::string>> lines;  // reason and ranks, who
  for (const DryRunRefusal& refusal : loop.refusals) {
    const std::string why = absl::StrCat(refusal.refusal.reason, Where(refusal, loop));
    const auto same = std::find_if(lines.begin(), lines.end(),
                                   [&](const auto& line) { return line.first == why; });
    if (same == lines.end() || refusal.refusal.variant.empty())
      lines.emplace_back(why, Head(refusal.refusal));
    else
      absl::StrAppend(&same->second, ", ", Head(refusal.refusal).substr(sizeof("not")));
  }
  std::string text;
  for (const auto& [why, who] : lines)
    absl::StrAppend(&text, kIndent, Clean(absl::StrCat(who, ": ", why)), "\n");
  return text;
}

std::string CostLine(const DryRunLoop& loop, const ProfileSpec& spec) {
  const PredictedCost& cost = loop.predicted;
  if (cost == PredictedCost{}) return "";
  const CostForecast forecast = ForecastCost(cost, spec.budget.overhead_ratio, spec.duration_ns);
  return absl::StrCat(kIndent, "a shadow  fork ", Ms(cost.fork_ns), ", later faults ",
                      Ms(cost.later_fault_ns), ", runs up to ", Ms(cost.most_run_ns),
                      "; its verdict (", kVerdictShadows, " shadows) ",
                      Range(SmallPercent(forecast.least_ratio), SmallPercent(forecast.most_ratio)),
                      " of the wall time\n");
}

std::string LoopBlock(const DryRunLoop& loop, const ProfileSpec& spec, const TextStyle& style) {
  const size_t room = static_cast<size_t>(std::max(style.width - 36, 20));
  const std::string place =
      CutEnd(Clean(absl::StrCat(loop.place, "  ", SourceText(loop.source))), room);
  const Paint paint = loop.patched() ? Paint::kGreen : Paint::kYellow;
  std::string text = absl::StrFormat(
      "  %-8s  %6s  %s  %s\n", Clean(loop.loop_id.substr(0, kShortIdDigits)), Percent(loop.share),
      Painted(style, paint, PadRight(Disposition(loop), 14)), Painted(style, Paint::kBold, place));
  if (!loop.variants.empty())
    absl::StrAppend(&text, kIndent, "variants  ", Clean(absl::StrJoin(loop.variants, " ")), "\n");
  text += RefusalLines(loop);
  for (const std::string& remark : loop.remarks)
    absl::StrAppend(&text, kIndent, Clean(remark), "\n");
  return text + CostLine(loop, spec);
}

std::string BudgetLines(const DryRunSummary& summary, const ProfileSpec& spec) {
  if (summary.patched_loops == 0) return "";
  const double budget_ns = spec.budget.overhead_ratio * static_cast<double>(spec.duration_ns);
  const CostForecast& forecast = summary.forecast;
  std::string text = absl::StrFormat(
      "  The budget of %s s (%s of %s) buys %s of each; a verdict needs %d.\n",
      Seconds(budget_ns / 1e9), Percent(spec.budget.overhead_ratio),
      FormatDuration(spec.duration_ns),
      Range(absl::StrCat(forecast.least_shadows), absl::StrCat(forecast.most_shadows)) + " shadows",
      kVerdictShadows);
  absl::StrAppend(&text, "  The verdicts on all of them would take ",
                  Range(SmallPercent(forecast.least_ratio), SmallPercent(forecast.most_ratio)),
                  " of the wall time, and each rank some stops of at most ",
                  FormatDuration(spec.budget.stop_ns), ".\n");
  if (forecast.most_shadows < kVerdictShadows && spec.budget.overhead_ratio > 0) {
    const double needed_s = static_cast<double>(kVerdictShadows) *
                            static_cast<double>(forecast.least_ns) / spec.budget.overhead_ratio /
                            1e9;
    absl::StrAppendFormat(&text,
                          "  That is too little: all verdicts need --duration %.0fs at least, or a "
                          "larger --overhead.\n",
                          std::ceil(needed_s - 1e-6));
  }
  return text +
         "  Only a first shadow can tell how long an instance takes, whether the loop is entered "
         "at all, and whether it\n"
         "  writes memory that other processes share: what fails there is left out then.\n";
}

}  // namespace

std::string RenderDryRun(const Report& report, const TextStyle& style) {
  const DryRunSummary summary = SummarizeDryRun(report);
  const ProfileSpec& spec = report.status.spec;
  std::string text = Painted(style, Paint::kBold, "What would be altered") +
                     "  (a dry run: nothing was stopped, altered or forked)\n";
  if (summary.loops.empty()) {
    return text + "  No hot loop was found in " + std::to_string(report.accounting.kept) +
           " samples: nothing would be patched.\n";
  }
  text += Painted(style, Paint::kBold, "  LOOP       SHARE  WOULD BE        FUNCTION") + "\n";
  for (const DryRunLoop& loop : summary.loops) text += LoopBlock(loop, spec, style);
  absl::StrAppend(&text, "  ", summary.patched_loops, " of ", summary.loops.size(),
                  " loops would be patched: ", Percent(summary.patched_share),
                  " of the job's time; refused: ", Percent(summary.refused_share), ".\n");
  return text + BudgetLines(summary, spec);
}

}  // namespace perfd::client
