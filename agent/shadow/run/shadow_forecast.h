// agent/shadow/run/shadow_forecast.h - whether the next shadow of a rank may be, and what it will cost: from its memory, and from what
//                                    earlier shadows did cost.
//
// Shape    Predict as often as anybody asks; CheckHazards and LearnShadow around each shadow.
// Units    ns, bytes.
// Errors   kFailedPrecondition: the rank must not be forked, and why; those of /proc.
// Threads  thread-compatible.
#ifndef AGENT_SHADOW_RUN_SHADOW_FORECAST_H_
#define AGENT_SHADOW_RUN_SHADOW_FORECAST_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/shadow/forking/memory_walk.h"
#include "agent/shadow/forking/preconditions.h"
#include "agent/shadow/forking/shadow_cost.h"
#include "agent/shadow/rank/injected_rank.h"
#include "agent/shadow/rank_injector.h"
#include "agent/shadow/run/fault_watch.h"

namespace perfd::agent {

class ShadowForecast {
 public:
  // The rank must live longer.
  ShadowForecast(const InjectedRank& rank, MemoryWalk walk);

  ShadowPrediction Predict();
  // Files may have been opened, mappings and devices mapped, a debugger may have come since the injector was opened.
  absl::StatusOr<RankHazards> CheckHazards();

  const ShadowCost& cost() const { return cost_; }
  absl::StatusOr<MemoryFacts> Facts() { return walk_.Facts(); }
  // Of the last walk.
  const std::vector<ForkedDifferently>& differs_in_fork() const { return walk_.differs_in_fork(); }

  // Of a shadow that has just ended; `whole`: nothing was left out of its fork. The faults to be expected in the rank.
  int64_t LearnShadow(const MemoryFacts& forked, int64_t fork_ns, bool whole);
  void LearnLaterFaults();

 private:
  absl::Status ReadMemoryCached();

  const InjectedRank& rank_;
  MemoryWalk walk_;
  ShadowCost cost_;
  std::optional<MemoryCache> memory_;
  int64_t memory_until_ns_ = 0;
  FaultWatch watch_;
  MemoryFacts forked_;  // by the shadow that is watched
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RUN_SHADOW_FORECAST_H_
