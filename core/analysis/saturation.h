// core/analysis/saturation.h - single runs of a loop and its variants in shadows -> saturations with intervals.
//
// Shape    ReduceRuns(all runs of one loop on one rank) -> figures of every variant, for the team (per run the slowest
//          thread) and, with more than one thread, for each thread. Each run is set against the mean of the base run
//          before and the base run after it in the same shadow, so that drift of the machine cancels.
// Units    cycles of the TSC per loop instance; probe_cycles is subtracted from each.
// Errors   a run or a variant that must not count is in Reduction::refusals with the reason; it is in no figure.
// Threads  thread-safe (pure, deterministic).
// Source   Sat(V, base) = T(V) / T(base): Bendifallah 2015, 4.3; stability (median - min) / min: 8.5; error check of
//          removals and trip counts: ibid., DECAN workflow; pairing and clustering: hazards of measuring, "Interval".
#ifndef CORE_ANALYSIS_SATURATION_H_
#define CORE_ANALYSIS_SATURATION_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/model/loop_measurement.h"

namespace perfd {

enum class RunOutcome : uint8_t {
  kOk,
  kFault,
  kTimeout,
  kNotRun,
  kCutShort,  // its instances came to an end before it had made as many as it was to
};

struct RunSample {
  uint32_t shadow = 0;  // one number per shadow: one instance of the loop
  uint32_t order = 0;   // of the run within the shadow
  int32_t thread = 0;   // index in the team
  std::string variant;  // canonical name
  double cycles = 0;
  uint64_t iterations = 0;  // 0: not counted
  RunOutcome status = RunOutcome::kOk;
};

struct ReduceOptions {
  double probe_cycles = 0;                          // cost of an empty timed run
  std::map<std::string, std::string> base_of = {};  // variants whose base is not REF
  double base_spread = 0.25;  // base before and after a run differ by more: the machine changed
  uint64_t seed = 1;
  bool with_threads = true;  // figures of each thread too
};

struct Reduction {
  // By variant, team first; REF and its relatives included, COUNT not: it tells the trip counts of the others.
  std::vector<VariantFigures> figures;
  std::vector<Refusal> refusals;  // by variant and reason, counted in runs
  double base_drift = 1;  // REF: last over first run of a shadow, median over shadows; 1: unknown
};

Reduction ReduceRuns(std::span<const RunSample> runs, const ReduceOptions& options = {});

// The ratio between any two variants, e.g. NO_DIV+NO_RED and NO_DIV; zero when no shadow ran both.
Ratio RatioBetween(std::span<const RunSample> runs, absl::string_view variant,
                   absl::string_view base, int32_t thread = kTeam,
                   const ReduceOptions& options = {});

// Enough of a variant: the interval is within +-half_width of its value (absolute: saturations are shares of the
// base's time) and comes from at least kLeastShadows instances.
inline constexpr uint32_t kLeastShadows = 3;
bool IntervalIsTight(const VariantFigures& figures, double half_width = 0.03);

// The stopping rule: tight, or `repetitions` valid runs.
bool IsEnough(const VariantFigures& figures, uint32_t repetitions = 31, double half_width = 0.03);

// Minimum, deciles and maximum of trip counts.
TripCounts TripDeciles(std::span<const uint64_t> counts);

// max(2 x stability, noise): two times within this relative distance are called equal, but never within more than
// kMostNoise: instances that scatter widely (their trip counts differ, say) have ratios that do not.
double NoiseOf(double stability, double noise = 0.05);
inline constexpr double kMostNoise = 0.15;  // the edge of "far above" in verdict.h

// True for variants that only delete, which therefore cannot be far slower than their base (kMostNoise).
bool OnlyRemoves(absl::string_view variant);

}  // namespace perfd

#endif  // CORE_ANALYSIS_SATURATION_H_
