#include "client/render/saturation_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/render/report_text.h"
#include "core/base/clock.h"

namespace perfd::client {
namespace {

constexpr int kBarCells = 20;
constexpr double kWidest =
    0.5;  // of the base's time, either way: whoever reads it may think anything
constexpr double kFarFromLive = 0.1;  // of a fidelity: then its reason is told
constexpr size_t kReasonsShown = 4;
constexpr size_t kShortIdDigits = 8;
constexpr char kIndent[] = "            ";

double ToSeconds(int64_t ns) {
  return static_cast<double>(ns) / kNsPerSecond;
}

std::string Count(uint64_t count, const char* what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// A base without a ratio to itself has only its cycles.
bool IsBase(const VariantSummary& v) {
  return v.variant == v.base;
}

bool IsShown(const VariantSummary& v) {
  return !IsBase(v) && v.variant != "COUNT" && v.variant != "TRACE";
}

std::string VariantLine(const VariantSummary& v, const TextStyle& style) {
  std::string line = absl::StrFormat("%s%-13s ", kIndent, Clean(v.variant));
  if (v.ranks.measured == 0) return absl::StrCat(line, "no valid run of ", v.invalid_runs, "\n");
  absl::StrAppend(&line, PadRight(SaturationText(v.saturation, style), 13), " ",
                  Bar(style, v.saturation.value, kBarCells));
  if (v.ranks.measured > 1)
    absl::StrAppendFormat(&line, "  ranks %.2f..%.2f", v.rank_min, v.rank_max);
  if (!v.ranks.all()) absl::StrAppend(&line, "  ", RanksText(v.ranks), " ranks");
  if (v.base != "REF") absl::StrAppend(&line, "  base ", Clean(v.base));
  if (v.edits.pinned < v.edits.accesses && v.variant == "DL1")
    absl::StrAppend(&line, "  pinned ", v.edits.pinned, " of ", v.edits.accesses);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

const ReportRow* RowOf(const Report& report, const std::string& loop_id) {
  const auto found = std::find_if(report.loops.begin(), report.loops.end(),
                                  [&](const ReportRow& row) { return row.id == loop_id; });
  return found == report.loops.end() ? nullptr : &*found;
}

std::string Head(const Report& report, const LoopVerdict& loop, const TextStyle& style) {
  const ReportRow* row = RowOf(report, loop.loop_id);
  const std::string place =
      row == nullptr ? loop.location_key
                     : absl::StrCat(LocationText(*row), "  ", SourceText(row->location.source));
  const size_t room = static_cast<size_t>(std::max(style.width - 58, 20));
  const std::string verdict = loop.state == MeasureState::kMeasured || loop.bound != Bound::kUnknown
                                  ? BoundText(loop.bound, loop.sure, Silence::kNone)
                                  : std::string(MeasureStateName(loop.state));
  return absl::StrFormat("  %-8s  %6s  %-25s %-9s  %s\n",
                         Clean(loop.loop_id.substr(0, kShortIdDigits)), Percent(loop.share),
                         verdict,
                         loop.level == DataLevel::kUnknown ? "" : DataLevelName(loop.level),
                         Painted(style, Paint::kBold, CutEnd(Clean(place), room)));
}

std::string Quality(const LoopVerdict& loop, const TextStyle& style) {
  std::vector<std::string> parts;
  if (!loop.agreement.empty()) parts.push_back(loop.agreement);
  if (loop.fidelity.value > 0)
    parts.push_back(absl::StrCat("fidelity ", FidelityText(loop.fidelity, loop.protocol, style)));
  if (loop.protocol == kInSituProtocol)
    parts.push_back("timed live in the ranks, not in shadows (recovery mode)");
  uint64_t most = 0;
  uint64_t shadows = 0;
  for (const VariantSummary& v : loop.variants) {
    if (IsShown(v)) most = std::max(most, v.valid_runs);
    shadows = std::max(shadows, v.shadows);
  }
  if (most > 0) parts.push_back(absl::StrCat("up to ", most, " runs in ", shadows, " instances"));
  return parts.empty() ? "" : absl::StrCat(kIndent, absl::StrJoin(parts, "; "), "\n");
}

std::string Phase(const Report& report, const LoopVerdict& loop) {
  const ReportRow* row = RowOf(report, loop.loop_id);
  const std::string text = row == nullptr ? "" : PhaseText(report, *row);
  return text.empty() ? "" : absl::StrCat(kIndent, text, "\n");
}

std::string Reasons(const LoopVerdict& loop) {
  std::string text;
  if (loop.why != Silence::kNone)
    absl::StrAppend(&text, kIndent, "no verdict: ", SilenceName(loop.why), "\n");
  if (!loop.open.empty())
    absl::StrAppend(&text, kIndent, "open: ", Clean(absl::StrJoin(loop.open, ", ")), "\n");
  const size_t shown = std::min(loop.refusals.size(), kReasonsShown);
  for (size_t i = 0; i < shown; ++i)
    absl::StrAppend(&text, kIndent, RefusalText(loop.refusals[i]), "\n");
  if (shown < loop.refusals.size())
    absl::StrAppend(&text, kIndent, "... and ", loop.refusals.size() - shown, " more reasons\n");
  for (const std::string& remark : loop.remarks)
    absl::StrAppend(&text, kIndent, Clean(remark), "\n");
  return text;
}

// Of jobs on several nodes, which pause in the same windows (docs/adr/0009).
std::string OverlapLine(const InjectionTotal& total) {
  std::string text;
  if (total.shared_ns > 0)
    absl::StrAppend(&text, "  pauses of several nodes overlapped for ",
                    Seconds(ToSeconds(total.shared_ns)), " s, which count once\n");
  if (total.pauses_lost > 0)
    absl::StrAppend(&text, "  the records of ", total.pauses_lost,
                    " pauses are lost: they count in full, whatever they overlapped with\n");
  return text;
}

std::string Gains(const LoopVerdict& loop, const TextStyle& style) {
  if (loop.gains.empty()) return "";
  std::string text = absl::StrCat(kIndent, "best gain  ",
                                  Painted(style, Paint::kBold, Clean(GainText(loop.gains.front()))),
                                  " of the job\n");
  const size_t shown = std::min<size_t>(loop.gains.size(), 4);
  std::vector<std::string> rest;
  for (size_t i = 1; i < shown; ++i) {
    const Gain& gain = loop.gains[i];
    rest.push_back(
        absl::StrCat(Percent(gain.of_job.value), " ", Clean(gain.name),
                     gain.ranks.all() ? "" : absl::StrCat(" (", RanksText(gain.ranks), " ranks)")));
  }
  if (!rest.empty())
    absl::StrAppend(&text, kIndent, "also       ", absl::StrJoin(rest, ", "), "\n");
  return text;
}

}  // namespace

std::string SaturationText(const Ratio& ratio, const TextStyle& style) {
  if (!ratio.has_interval()) return absl::StrFormat("%.2f", ratio.value);
  const double half = std::max(ratio.high - ratio.value, ratio.value - ratio.low);
  if (half > kWidest && half > ratio.value / 2) return absl::StrFormat("%.2f unsure", ratio.value);
  return absl::StrFormat("%.2f %s%.2f", ratio.value, style.utf8 ? "±" : "+-", half);
}

std::string RanksText(const MeasuredRanks& ranks) {
  if (ranks.all()) return absl::StrCat(ranks.measured);
  return absl::StrCat(ranks.measured, " of ", ranks.asked);
}

std::string GainText(const Gain& gain) {
  const std::string some =
      gain.ranks.all() ? "" : absl::StrCat(", measured on ", RanksText(gain.ranks), " ranks");
  return absl::StrFormat("%s %s %s (%s%s)", Percent(gain.of_job.value),
                         Interval95(gain.of_job.low, gain.of_job.high), gain.name, gain.variant,
                         some);
}

std::string FidelityText(const Fidelity& fidelity, absl::string_view protocol,
                         const TextStyle& style) {
  std::vector<std::string> of;
  if (!protocol.empty()) of.push_back(Clean(protocol));
  if (fidelity.runs > 0)
    of.push_back(
        absl::StrCat(Count(fidelity.runs, "run"), " in ", Count(fidelity.shadows, "shadow")));
  if (fidelity.live_instances > 0)
    of.push_back(absl::StrCat("against ", Count(fidelity.live_instances, "live instance")));
  std::string text = SaturationText(fidelity.ratio(), style);
  if (!of.empty()) absl::StrAppend(&text, " (", absl::StrJoin(of, ", "), ")");
  const bool off = std::abs(fidelity.value - 1) > kFarFromLive;
  if (off && fidelity.reason != FidelityReason::kUnknown)
    absl::StrAppend(&text, ": ", FidelityReasonName(fidelity.reason));
  return text;
}

std::string RefusalText(const Refusal& refusal) {
  std::string text = refusal.variant.empty() ? "refused" : absl::StrCat("not ", refusal.variant);
  if (refusal.instruction != 0) absl::StrAppend(&text, " at 0x", absl::Hex(refusal.instruction));
  absl::StrAppend(&text, ": ", refusal.reason);
  if (refusal.count > 1) absl::StrAppend(&text, " (", refusal.count, " times)");
  return Clean(text);
}

std::string BoundText(Bound bound, bool sure, Silence why) {
  if (bound == Bound::kUnknown)
    return absl::StrCat(BoundName(bound), why == Silence::kNone ? "" : ": ", SilenceName(why));
  return absl::StrCat(BoundName(bound), sure ? "" : " (unsure)");
}

std::string BoundText(const LoopVerdict& loop) {
  return BoundText(loop.bound, loop.sure, loop.why);
}

std::string CostText(const InjectionCost& cost) {
  std::string text = absl::StrFormat(
      "%d stops %s s (longest %.1f ms), %d shadows %s s (longest %.1f ms), %d failed arms, later "
      "faults %s s and pass-through %s s (estimated)",
      cost.stops, Seconds(ToSeconds(cost.stop_ns)), ToSeconds(cost.longest_stop_ns) * 1e3,
      cost.shadows, Seconds(ToSeconds(cost.pause_ns)), ToSeconds(cost.longest_pause_ns) * 1e3,
      cost.failed_arms, Seconds(ToSeconds(cost.later_fault_ns)),
      Seconds(ToSeconds(cost.pass_through_ns)));
  if (cost.recoveries > 0) {
    absl::StrAppendFormat(&text, ", %d copies run in the ranks themselves %s s", cost.recoveries,
                          Seconds(ToSeconds(cost.recovery_ns)));
  }
  if (cost.shadow_cpu_ns > 0) {
    absl::StrAppendFormat(&text, ", CPU time of shadows %s s (counted to the job's children)",
                          Seconds(ToSeconds(cost.shadow_cpu_ns)));
  }
  return text;
}

std::string RenderSaturations(const Report& report, const TextStyle& style, int top) {
  if (report.findings.verdicts.empty()) return "";
  std::string text = Painted(style, Paint::kBold, "What a fix would save") +
                     "  (times in shadows of the running job; gains are estimated)\n" +
                     Painted(style, Paint::kBold,
                             "  LOOP       SHARE  VERDICT                   DATA       FUNCTION") +
                     "\n";
  const size_t have = report.findings.verdicts.size();
  const size_t shown = top <= 0 ? have : std::min(have, static_cast<size_t>(top));
  for (size_t i = 0; i < shown; ++i) {
    const LoopVerdict& loop = report.findings.verdicts[i];
    absl::StrAppend(&text, Head(report, loop, style), Gains(loop, style));
    for (const VariantSummary& v : loop.variants) {
      if (IsShown(v)) text += VariantLine(v, style);
    }
    absl::StrAppend(&text, Quality(loop, style), Phase(report, loop), Reasons(loop));
  }
  if (shown < have) absl::StrAppend(&text, "  ... and ", have - shown, " more loops (--top 0)\n");
  return text;
}

std::string RenderInjection(const Report& report) {
  if (report.findings.injection == InjectionTotal{}) return "";
  return absl::StrFormat(
             "Injection: %s s of wall time added, %.3f%% of the profile; budget %s\n  %s\n",
             Seconds(ToSeconds(report.findings.injection.added_wall_ns)), report.findings.injection.added_ratio * 100,
             Percent(report.status.spec.budget.overhead_ratio), CostText(report.findings.injection.sum)) +
         OverlapLine(report.findings.injection);
}

}  // namespace perfd::client
