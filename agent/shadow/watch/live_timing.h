// agent/shadow/watch/live_timing.h - how long instances of the unchanged loop take in the rank itself. Nothing is forked.
//
// Errors   kFailedPrecondition: this loop cannot be timed, and why; kDeadlineExceeded: it was not entered in time; those of
//          LiveRegion.
// Units    ticks of the TSC, without what reading them costs.
#ifndef AGENT_SHADOW_WATCH_LIVE_TIMING_H_
#define AGENT_SHADOW_WATCH_LIVE_TIMING_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/shadow/rank/injected_rank.h"

namespace perfd::agent {

// Of the next `count` instances. The site has its jump in the text.
absl::StatusOr<std::vector<uint64_t>> TimeLive(InjectedRank& rank, const PatchSite& site,
                                               int32_t count, int64_t timeout_ns);

// Of the next `count` batches of `turns` turns of the loop around, as the shadow's batches are: a thread at a time runs one, reading the
// clock at its ends only, and the others run on.
absl::StatusOr<std::vector<LiveBatch>> TimeLiveBatches(InjectedRank& rank, const PatchSite& site,
                                                       int32_t count, uint64_t turns,
                                                       int64_t timeout_ns);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_WATCH_LIVE_TIMING_H_
