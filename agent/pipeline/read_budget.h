// agent/pipeline/read_budget.h - how long the resolver may still wait for the code of one profile's modules.
//
// Shape    Left() before, Spend(what was used) after. All profiles of a node share one resolver: one whose modules cannot be read in
//          time must not use up the others' time. It starts with kBurst, and earns kShare of the time that passes, up to
//          kBurst again.
// Units    wall time.
// Threads  thread-bound (the resolver's thread).
#ifndef AGENT_PIPELINE_READ_BUDGET_H_
#define AGENT_PIPELINE_READ_BUDGET_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "core/base/clock.h"

namespace perfd::agent {

class ReadBudget {
 public:
  static constexpr int64_t kBurstNs =
      45 * kNsPerSecond;                 // the first look at a few binaries of some hundred MB
  static constexpr int64_t kShare = 10;  // one in so many

  explicit ReadBudget(const Clock& clock) : clock_(clock), earned_at_ns_(clock.MonotonicNs()) {}

  absl::Duration Left() {
    const int64_t now_ns = clock_.MonotonicNs();
    left_ns_ = std::min(kBurstNs, left_ns_ + (now_ns - earned_at_ns_) / kShare);
    earned_at_ns_ = now_ns;
    return absl::Nanoseconds(std::max<int64_t>(left_ns_, 0));
  }
  void Spend(int64_t used_ns) { left_ns_ -= used_ns; }

 private:
  const Clock& clock_;
  int64_t earned_at_ns_;
  int64_t left_ns_ = kBurstNs;
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_READ_BUDGET_H_
