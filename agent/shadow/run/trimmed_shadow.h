// agent/shadow/run/trimmed_shadow.h - one shadow that leaves memory out. The rank marks, forks and unmarks by itself while all of its
//                                   threads stand in the payload; here is decided whether they do, and what may be left out.
//
// Shape    AnswerLeader until answered(); End once the arming is over.
// Errors   End: kAborted: nothing was left out, and why; another instance may be better.
// Threads  thread-compatible.
// Source   agent/shadow/forking/trim_plan.h; docs/adr/0013-narrow-forks.md.
#ifndef AGENT_SHADOW_RUN_TRIMMED_SHADOW_H_
#define AGENT_SHADOW_RUN_TRIMMED_SHADOW_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/shadow/forking/shadow_cost.h"
#include "agent/shadow/forking/trimmed_fork.h"
#include "agent/shadow/rank/injected_rank.h"
#include "agent/shadow/run/trimmed_forks.h"
#include "agent/shadow/shadow_plan.h"

namespace perfd::agent {

class TrimmedShadow {
 public:
  // All of them must live longer.
  TrimmedShadow(const InjectedRank& rank, const ShadowCost& cost, TrimmedForks& forks,
                TrimWork work)
      : rank_(rank), cost_(cost), forks_(forks), work_(std::move(work)) {}

  bool answered() const { return work_.answered; }
  const TrimmedFork& chosen() const { return work_.chosen; }

  // If the leader waits for it by now.
  absl::Status AnswerLeader(const ShadowPlan& plan);
  // Marks that were left are noted whatever else happened.
  absl::Status End();

 private:
  absl::StatusOr<TeamPointers> ReadPointers(uint32_t team) const;
  absl::Status Choose(const ShadowPlan& plan);

  const InjectedRank& rank_;
  const ShadowCost& cost_;
  TrimmedForks& forks_;
  TrimWork work_;
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RUN_TRIMMED_SHADOW_H_
