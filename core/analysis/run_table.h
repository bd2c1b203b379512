// core/analysis/run_table.h - the runs of one thread, or of the team, checked and ready to be paired.
//
// Shape    a run with a reason does not count; the others have cycles > 0, the probe's cost subtracted.
// Threads  thread-safe (pure).
#ifndef CORE_ANALYSIS_RUN_TABLE_H_
#define CORE_ANALYSIS_RUN_TABLE_H_

#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/analysis/cluster_median.h"
#include "core/analysis/saturation.h"

namespace perfd {

struct CheckedRun {
  uint32_t shadow = 0;
  uint32_t order = 0;
  std::string variant;
  double cycles = 0;
  uint64_t iterations = 0;
  std::string reason;  // empty: it counts
  RefusalKind kind = RefusalKind::kOther;

  bool valid() const { return reason.empty(); }
};

// By shadow, then order. kTeam: the slowest thread of each run, void when any thread's run is.
std::vector<CheckedRun> CheckRuns(std::span<const RunSample> runs, int32_t thread,
                                  const ReduceOptions& options);

struct PairedRuns {
  std::vector<ClusterValue> ratios;     // by shadow
  std::vector<const CheckedRun*> runs;  // that count
  std::vector<Refusal> refusals;        // one for each run that has no ratio
};

// Each run of `variant` over the mean of its neighbouring runs of `base`; where that is REF, both must be there.
PairedRuns PairRuns(std::span<const CheckedRun> runs, absl::string_view variant,
                    absl::string_view base, double base_spread);

}  // namespace perfd

#endif  // CORE_ANALYSIS_RUN_TABLE_H_
