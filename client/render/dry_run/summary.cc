#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/render/dry_run/dry_run.h"
#include "client/render/report_text.h"
#include "core/analysis/job_verdict.h"

namespace perfd::client {
namespace {

const ReportRow* RowOf(const Report& report, const std::string& loop_id) {
  const auto found = std::find_if(report.loops.begin(), report.loops.end(),
                                  [&](const ReportRow& row) { return row.id == loop_id; });
  return found == report.loops.end() ? nullptr : &*found;
}

bool Refused(MeasureState state) {
  return state == MeasureState::kRefused || state == MeasureState::kNeverEntered;
}

bool Says(const LoopMeasurement& rank, const Refusal& refusal) {
  if (refusal.variant.empty()) return Refused(rank.state) && rank.reason == refusal.reason;
  return std::any_of(rank.refusals.begin(), rank.refusals.end(), [&](const Refusal& own) {
    return own.variant == refusal.variant && own.instruction == refusal.instruction &&
           own.reason == refusal.reason;
  });
}

DryRunRefusal WhoRefuses(const LoopVerdict& loop, const Refusal& refusal) {
  DryRunRefusal out{refusal, {}};
  for (const RankVerdict& rank : loop.ranks) {
    if (Says(rank.measurement, refusal)) out.ranks.push_back(RankName(rank.measurement));
  }
  return out;
}

// In the order of the request; what was not asked for by that name comes last.
std::vector<std::string> Ordered(std::vector<std::string> variants,
                                 const std::vector<std::string>& asked) {
  const auto place = [&](const std::string& name) {
    return std::find(asked.begin(), asked.end(), name) - asked.begin();
  };
  std::stable_sort(variants.begin(), variants.end(),
                   [&](const std::string& a, const std::string& b) { return place(a) < place(b); });
  return variants;
}

void Describe(const ReportRow* row, DryRunLoop& out) {
  if (row == nullptr) return;
  out.place = LocationText(*row);
  out.source = row->location.source;
  out.share = ShownShare(*row).share;
}

DryRunLoop OfVerdict(const Report& report, const LoopVerdict& loop) {
  DryRunLoop out;
  out.loop_id = loop.loop_id;
  out.place = loop.location_key;
  out.share = loop.share;
  Describe(RowOf(report, loop.loop_id), out);
  out.ranks_total = out.ranks_patched = loop.ranks_total;
  for (const Refusal& refusal : loop.refusals) {
    out.refusals.push_back(WhoRefuses(loop, refusal));
    if (refusal.variant.empty())
      out.ranks_patched -= std::min<uint64_t>(refusal.count, out.ranks_patched);
  }
  out.variants = Ordered(loop.open, report.status.spec.variants.set);
  out.remarks = loop.remarks;
  if (out.patched()) out.predicted = loop.predicted;
  return out;
}

DryRunLoop Unanswered(const ReportRow& row) {
  DryRunLoop out;
  out.loop_id = row.id;
  Describe(&row, out);
  out.refusals.push_back(
      {{"", 0,
        "no agent looked at it in time, or those of its ranks never alter loops (--no-injection)",
        1},
       {}});
  return out;
}

}  // namespace

DryRunSummary SummarizeDryRun(const Report& report) {
  DryRunSummary out;
  for (const LoopVerdict& loop : report.findings.verdicts) out.loops.push_back(OfVerdict(report, loop));
  // Every agent that may inject answers for every loop it was asked for.
  for (const ReportRow& row : report.loops) {
    if (row.hot && report.findings.verdicts.empty()) out.loops.push_back(Unanswered(row));
  }
  std::stable_sort(out.loops.begin(), out.loops.end(),
                   [](const DryRunLoop& a, const DryRunLoop& b) { return a.share > b.share; });
  for (const DryRunLoop& loop : out.loops) {
    out.patched_loops += loop.patched();
    (loop.patched() ? out.patched_share : out.refused_share) += loop.share;
    AddCost(loop.predicted, out.predicted);
  }
  const ProfileSpec& spec = report.status.spec;
  out.forecast = ForecastCost(out.predicted, spec.budget.overhead_ratio, spec.duration_ns);
  return out;
}

}  // namespace perfd::client
