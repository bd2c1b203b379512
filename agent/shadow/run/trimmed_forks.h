// agent/shadow/run/trimmed_forks.h - shadows that leave out what the loop does not touch: whether this rank can have them, at what cost.
//
// Shape    Begin before each such shadow, TrimmedShadow while its team stands still; Predict as often as anybody asks.
// Errors   kFailedPrecondition: this process must not be trimmed, and why; those of /proc.
// Units    ns, bytes.
// Threads  thread-compatible.
// Source   docs/adr/0013-narrow-forks.md.
#ifndef AGENT_SHADOW_RUN_TRIMMED_FORKS_H_
#define AGENT_SHADOW_RUN_TRIMMED_FORKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/shadow/forking/trimmed_fork.h"
#include "agent/shadow/rank/injected_rank.h"
#include "agent/shadow/rank_injector.h"
#include "agent/shadow/run/shadow_forecast.h"

namespace perfd::agent {

// Another thread than those of the team could fork while memory is marked.
absl::Status CheckThreads(const std::vector<int32_t>& threads, int32_t team);

class TrimmedForks {
 public:
  // Both must live longer.
  TrimmedForks(const InjectedRank& rank, ShadowForecast& forecast)
      : rank_(rank), forecast_(forecast) {}

  absl::StatusOr<TrimWork> Begin(const Footprint& footprint, int32_t team);
  ShadowPrediction Predict(const Footprint& footprint, int32_t team);
  // Ranges that the kernel still keeps from forks of the rank: there are no trimmed forks from now on.
  void AddStuckMarks(uint32_t ranges);

 private:
  absl::Status MayTrim(int32_t team) const;

  const InjectedRank& rank_;
  ShadowForecast& forecast_;
  int32_t stuck_marks_ = 0;
  absl::StatusOr<TrimWork> cached_ = absl::UnknownError("never looked");  // for predictions
  int64_t cached_until_ns_ = 0;
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RUN_TRIMMED_FORKS_H_
