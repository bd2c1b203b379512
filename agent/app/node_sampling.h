// agent/app/node_sampling.h - what the sources of all sessions of a node share: known costs, and the memory for rings.
//
// Units    ring memory in bytes.
// Errors   Open: as PerfSampleSource.
// Threads  thread-safe, but for LearnUsualCosts (the main thread).
#ifndef AGENT_APP_NODE_SAMPLING_H_
#define AGENT_APP_NODE_SAMPLING_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "agent/kernel/kernel_causes.h"
#include "agent/pipeline/session.h"
#include "agent/procfs/procfs.h"
#include "agent/sample/cost/sampling_costs.h"
#include "agent/sample/ring/ring_budget.h"
#include "agent/sample/sampling_event.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace perfd::agent {

class NodeSampling {
 public:
  // `clock` outlives the source. Fills in what the kernel's functions tell, and which accesses
  // to memory can be sampled.
  absl::StatusOr<OpenedSource> Open(SamplingOptions options, const MemorySpec& memory,
                                    const ProcFs& procfs, const Clock* clock);
  // Once, and not when a job's time counts. A profile that begins meanwhile waits for it.
  void LearnUsualCosts(const SamplingOptions& usual, const ProcFs& procfs);
  const RingBudget& rings() const { return rings_; }

 private:
  std::shared_ptr<const KernelCauses> CausesOnce(const ProcFs& procfs);

  SamplingCosts costs_;
  Mutex mutex_;
  std::shared_ptr<const KernelCauses> causes_ ABSL_GUARDED_BY(mutex_);
  bool usual_costs_known_ = false;
  RingBudget rings_{RingCapBytes(NodeMemoryBytes())};
};

}  // namespace perfd::agent

#endif  // AGENT_APP_NODE_SAMPLING_H_
