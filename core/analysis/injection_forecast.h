// core/analysis/injection_forecast.h - what measuring a loop would cost the job, before anything is measured.
//
// Shape    JobCost merges the predictions of a dry run over ranks; ForecastCost sets them against the budget.
// Units    ns of wall time; ratios of the profile's duration. How long the runs of a shadow take is not known before an
//          instance was timed: every figure is a range, from runs that take no time to runs as long as they may be.
// Threads  thread-safe (pure).
// Source   the ranks of a node take their shadows together (agent/experiment): on a node the longest counts. Nodes add up,
//          which is the most they can: whether their pauses overlap (docs/adr/0009) is known when they were measured.
#ifndef CORE_ANALYSIS_INJECTION_FORECAST_H_
#define CORE_ANALYSIS_INJECTION_FORECAST_H_

#include <cstdint>
#include <span>

#include "core/analysis/saturation.h"
#include "core/model/loop_measurement.h"

namespace perfd {

// The least that a verdict takes: a first look, then as many instances of REF, LS, FP and DL1 as count.
inline constexpr int64_t kVerdictShadows = 1 + kLeastShadows;

// One shadow of a loop on every node; `ranks`: its measurements, refused ones cost nothing.
PredictedCost JobCost(std::span<const LoopMeasurement* const> ranks);
// Sums end at kMostCost (injection_total.h).
void AddCost(const PredictedCost& cost, PredictedCost& sum);

struct CostForecast {
  int64_t least_ns = 0;  // of one shadow
  int64_t most_ns = 0;
  double least_ratio = 0;     // of kVerdictShadows, over the duration
  double most_ratio = 0;      // at most the budget: what it does not buy is not done
  int64_t least_shadows = 0;  // that the budget buys
  int64_t most_shadows = 0;

  bool operator==(const CostForecast&) const = default;
};

// All zero when nothing was predicted. `overhead_ratio` 0..0.5.
CostForecast ForecastCost(const PredictedCost& cost, double overhead_ratio, int64_t duration_ns);

}  // namespace perfd

#endif  // CORE_ANALYSIS_INJECTION_FORECAST_H_
