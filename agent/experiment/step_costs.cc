// What the steps of a NodeExperimenter cost, and who cannot be paid for.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/experiment/node_experimenter.h"

namespace perfd::agent {

int64_t AddedWallNs(const std::vector<StepCost>& costs) {
  std::vector<std::pair<int64_t, int64_t>> pauses;
  int64_t later = 0;
  for (const StepCost& cost : costs) {
    if (cost.pause_begin_ns != 0)
      pauses.emplace_back(cost.pause_begin_ns, cost.pause_begin_ns + cost.pause_ns);
    later = std::max(later, cost.later_ns);
  }
  std::sort(pauses.begin(), pauses.end());
  int64_t paused = 0, until = 0;
  for (const auto& [begin, end] : pauses) {
    paused += std::max<int64_t>(0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return paused + later;
}

// What adds wall time without a pause (recovery mode) overlaps with nothing that other nodes could tell of.
double NodeExperimenter::ChargeOf(size_t loop, const RankExperiments& bench) const {
  return bench.experiment(loop).InSitu() ? gate_->OutsideCharge() : charge_;
}

// What a run of this loop costs for its weight, which falls with its place in the order as times of loops usually do (Zipf).
double NodeExperimenter::Price(size_t loop) const {
  int64_t run_ns = 0;
  for (const RankExperiments* bench : AllRankExperiments())
    run_ns = std::max(run_ns, bench->experiment(loop).RoundNs());
  const std::vector<MeasureLoop>& order = newest_.empty() ? request_.plan.loops : newest_;
  const std::string& id = request_.plan.loops[loop].loop_id;
  const auto at = std::find_if(order.begin(), order.end(),
                               [&](const MeasureLoop& other) { return other.loop_id == id; });
  return static_cast<double>(run_ns) * static_cast<double>(at - order.begin() + 1);
}

// Of the next step, as it is charged; 0: nothing.
int64_t NodeExperimenter::CostOf(size_t loop, const std::vector<RankExperiments*>& benches,
                                 int64_t (RankExperiments::*each)(size_t)) const {
  int64_t cost = 0;
  for (RankExperiments* bench : benches) {
    const auto predicted = static_cast<double>(correction_.Corrected((bench->*each)(loop)));
    cost = std::max(cost, static_cast<int64_t>(ChargeOf(loop, *bench) * predicted));
  }
  return cost;
}

void NodeExperimenter::CloseUnaffordable(size_t loop, const std::vector<RankExperiments*>& benches,
                                         int64_t cost_ns) {
  const std::string reason = absl::StrFormat(
      "the budget (%.1f %% of the elapsed time) does not buy the next shadow: it costs %.0f ms, "
      "%.0f ms are left",
      100 * request_.plan.budget.overhead_ratio, static_cast<double>(cost_ns) / 1e6,
      static_cast<double>(budget_->TotalNs() - budget_->spent_ns()) / 1e6);
  for (RankExperiments* bench : benches) {
    const std::string note = bench->experiment(loop).TrimRecord();
    bench->Close(loop, note.empty() ? reason : absl::StrCat(reason, "; ", note));
    bench->Settle(loop);  // nothing will need its jump
  }
}

}  // namespace perfd::agent
