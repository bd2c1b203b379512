#include "core/analysis/injection_forecast.h"

#include <algorithm>
#include <map>
#include <string>

#include "core/analysis/injection_total.h"

namespace perfd {
namespace {

void Raise(int64_t by, int64_t& sum) {
  sum = by >= kMostCost - std::min(sum, kMostCost) ? kMostCost : sum + by;
}

PredictedCost Longest(const PredictedCost& a, const PredictedCost& b) {
  return {std::max(a.fork_ns, b.fork_ns), std::max(a.later_fault_ns, b.later_fault_ns),
          std::max(a.most_run_ns, b.most_run_ns)};
}

}  // namespace

void AddCost(const PredictedCost& cost, PredictedCost& sum) {
  Raise(cost.fork_ns, sum.fork_ns);
  Raise(cost.later_fault_ns, sum.later_fault_ns);
  Raise(cost.most_run_ns, sum.most_run_ns);
}

PredictedCost JobCost(std::span<const LoopMeasurement* const> ranks) {
  std::map<std::string, PredictedCost> nodes;
  for (const LoopMeasurement* rank : ranks)
    nodes[rank->node] = Longest(nodes[rank->node], rank->predicted);
  PredictedCost job;
  for (const auto& [node, cost] : nodes) AddCost(cost, job);
  return job;
}

CostForecast ForecastCost(const PredictedCost& cost, double overhead_ratio, int64_t duration_ns) {
  CostForecast forecast;
  forecast.least_ns = cost.fork_ns + cost.later_fault_ns;
  forecast.most_ns = forecast.least_ns + cost.most_run_ns;
  if (forecast.least_ns <= 0 || duration_ns <= 0) return forecast;
  const double duration = static_cast<double>(duration_ns);
  const auto ratio = [&](int64_t ns) {
    return static_cast<double>(kVerdictShadows) * static_cast<double>(ns) / duration;
  };
  forecast.least_ratio = std::min(overhead_ratio, ratio(forecast.least_ns));
  forecast.most_ratio = std::min(overhead_ratio, ratio(forecast.most_ns));
  const auto budget_ns = static_cast<int64_t>(overhead_ratio * duration);
  forecast.least_shadows = budget_ns / forecast.most_ns;
  forecast.most_shadows = budget_ns / forecast.least_ns;
  return forecast;
}

}  // namespace perfd
