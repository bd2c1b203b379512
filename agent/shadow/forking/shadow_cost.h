// agent/shadow/forking/shadow_cost.h - what the next fork of a rank will cost it: from its memory and what earlier forks did cost. Pure.
//
// Shape    Predict(facts); Learn* after each shadow.
// Units    ns; per MB of resident memory, small and huge pages apart.
// Threads  thread-compatible.
// Source   docs/benchmarks/constants.md#kforkbasens (forks of 64 MB to 4 GB); pages: page_costs.h.
//          Other machines took up to half as much again: the first fork there is underrated, later ones are not.
#ifndef AGENT_SHADOW_FORKING_SHADOW_COST_H_
#define AGENT_SHADOW_FORKING_SHADOW_COST_H_

#include <cstdint>

#include "agent/shadow/forking/fault_cost.h"
#include "agent/shadow/forking/process_files.h"

namespace perfd::agent {

class ShadowCost {
 public:
  explicit ShadowCost(const PageCosts& costs = kUsualCosts) : costs_(costs) {}

  int64_t ForkNs(const MemoryFacts& facts) const;
  int64_t LaterFaultNs(const MemoryFacts& facts) const;
  int64_t CopyNsPerMb() const;

  // A fork of a rank with these facts took `fork_ns`.
  void LearnFork(const MemoryFacts& facts, int64_t fork_ns);
  // After a shadow the rank had this many faults more than it has without one.
  void LearnLaterFaults(const MemoryFacts& facts, uint64_t faults);

 private:
  PageCosts costs_;
  double fork_factor_ = 1;
  double later_share_ = 0.25;  // of the private dirty pages, written to again soon
  bool later_learnt_ = false;
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_FORKING_SHADOW_COST_H_
