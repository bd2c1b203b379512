// agent/shadow/forking/shadow_cost.h - what the next fork of a rank will cost it: from its memory and what earlier forks did cost. Pure.
//
// Shape    Predict(facts); Learn* after each shadow.
// Units    ns; per MB of resident memory, small and huge pages apart.
// Threads  thread-compatible.
// Source   docs/benchmarks/constants.md#kforkbasens (forks of 64 MB to 4 GB) and #copy_ns_per_mb_; injection findings 5.3.
//          Other machines took up to half as much again: the first fork there is underrated, later ones are not.
#ifndef AGENT_SHADOW_FORKING_SHADOW_COST_H_
#define AGENT_SHADOW_FORKING_SHADOW_COST_H_

#include <cstdint>

#include "agent/shadow/forking/fault_cost.h"
#include "agent/shadow/forking/process_files.h"

namespace perfd::agent {

class ShadowCost {
 public:
  // fault_ns: of one page that is copied later (fault_cost.h).
  explicit ShadowCost(double fault_ns = kUsualFaultNs) : fault_ns_(fault_ns) {}

  int64_t ForkNs(const MemoryFacts& facts) const;
  int64_t LaterFaultNs(const MemoryFacts& facts) const;
  int64_t CopyNsPerMb() const { return copy_ns_per_mb_; }

  // So many threads run at the same time: each copied page interrupts the others' CPUs.
  void SawTeam(int32_t team) { company_ = company_ || team > 1; }
  // A fork of a rank with these facts took `fork_ns`.
  void LearnFork(const MemoryFacts& facts, int64_t fork_ns);
  // After a shadow the rank had this many faults more than it has without one.
  void LearnLaterFaults(const MemoryFacts& facts, uint64_t faults);

 private:
  double fault_ns_;
  bool company_ = false;
  double fork_factor_ = 1;
  double later_share_ = 0.25;           // of the private dirty pages, written to again soon
  int64_t copy_ns_per_mb_ = 2'500'000;  // findings 5.3: 290-367 ms for 128 MB
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_FORKING_SHADOW_COST_H_
