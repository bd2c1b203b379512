#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/render/dry_run/dry_run.h"
#include "core/json/status_json.h"
#include "core/spec/spec.h"

namespace perfd::client {
namespace {

Json RefusalsToJson(const std::vector<DryRunRefusal>& refusals) {
  Json list = Json::array();
  for (const DryRunRefusal& r : refusals)
    list.push_back({{"variant", r.refusal.variant},
                    {"instruction", absl::StrCat("0x", absl::Hex(r.refusal.instruction))},
                    {"reason", r.refusal.reason},
                    {"ranks", r.refusal.count},
                    {"rank_names", r.ranks}});
  return list;
}

Json PredictedToJson(const PredictedCost& cost, const ProfileSpec& spec) {
  const CostForecast forecast = ForecastCost(cost, spec.budget.overhead_ratio, spec.duration_ns);
  return {{"fork_ns", cost.fork_ns},
          {"later_fault_ns", cost.later_fault_ns},
          {"most_run_ns", cost.most_run_ns},
          {"verdict_shadows", kVerdictShadows},
          {"least_ratio", forecast.least_ratio},
          {"most_ratio", forecast.most_ratio},
          {"least_shadows", forecast.least_shadows},
          {"most_shadows", forecast.most_shadows}};
}

Json LoopToJson(const DryRunLoop& loop, const ProfileSpec& spec) {
  return {{"loop_id", loop.loop_id},
          {"function", loop.place},
          {"file", loop.source.file},
          {"first_line", loop.source.first_line},
          {"last_line", loop.source.last_line},
          {"share", loop.share},
          {"would_be_patched", loop.patched()},
          {"ranks_patched", loop.ranks_patched},
          {"ranks_total", loop.ranks_total},
          {"variants", loop.variants},
          {"refusals", RefusalsToJson(loop.refusals)},
          {"remarks", loop.remarks},
          {"predicted", PredictedToJson(loop.predicted, spec)}};
}

}  // namespace

Json DryRunToJson(const Report& report) {
  const DryRunSummary summary = SummarizeDryRun(report);
  const ProfileSpec& spec = report.status.spec;
  Json loops = Json::array();
  for (const DryRunLoop& loop : summary.loops) loops.push_back(LoopToJson(loop, spec));
  return {{"id", report.status.id},
          {"state", ProfileStateName(report.status.state)},
          {"dry_run", spec.dry_run},
          {"loops", loops},
          {"patched_loops", summary.patched_loops},
          {"patched_share", summary.patched_share},
          {"refused_share", summary.refused_share},
          {"budget",
           {{"overhead_ratio", spec.budget.overhead_ratio},
            {"duration_ns", spec.duration_ns},
            {"stop_ns", spec.budget.stop_ns},
            {"shadow_ns", spec.budget.shadow_ns}}},
          {"predicted", PredictedToJson(summary.predicted, spec)},
          {"notices", NoticesToJson(report.status.notices)},
          {"spec", FormatProfileSpec(spec)}};
}

}  // namespace perfd::client
