// agent/pipeline/cost/start_limit.h - when a rank starts threads so often that following them costs it too much.
//
// Shape    CostsTooMuch(limit, starts): that it costs more than the budget was seen for half a second, and most of what was started is
//          gone. A team that is started once, however large, is not meant.
// Why      a lower frequency does not spare it: the kernel works for each start as soon as the thread that starts has an event. And
//          little is sampled of threads that end before they can be given one.
// Units    ns; ratios of elapsed time.
// Threads  thread-safe (pure).
// Source   promise P4; docs/adr/0051-starts-of-threads.md.
#ifndef AGENT_PIPELINE_COST_START_LIMIT_H_
#define AGENT_PIPELINE_COST_START_LIMIT_H_

#include <cstdint>

#include "core/base/clock.h"

namespace perfd::agent {

struct StartLimit {
  double start_ns = 0;      // what one start costs
  double budget_ratio = 0;  // allowed cost / elapsed time
};

// Of one rank, since its first one.
struct RankStarts {
  uint64_t count = 0;
  uint64_t threads = 0;  // that it has now
  int64_t followed_ns = 0;
};

inline double StartCostRatio(const StartLimit& limit, const RankStarts& starts) {
  if (starts.followed_ns <= 0) return 0;
  return limit.start_ns * static_cast<double>(starts.count) /
         static_cast<double>(starts.followed_ns);
}

inline bool CostsTooMuch(const StartLimit& limit, const RankStarts& starts) {
  constexpr int64_t kLeastNs = 500 * kNsPerMs;
  constexpr uint64_t kLeastStarts = 500;
  constexpr uint64_t kMostGone = 4;
  return starts.followed_ns >= kLeastNs && starts.count >= kLeastStarts &&
         starts.count > kMostGone * starts.threads &&
         StartCostRatio(limit, starts) > limit.budget_ratio;
}

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_COST_START_LIMIT_H_
