// agent/pipeline/session_experiment.h - a session's part in measuring variants: takes the order, finds the loops, hands the
//                                       experimenter over to its work and carries home what it finds.
//
// Shape    Order (from the link) -> Locate (each search for ranks) -> Drain (each window) -> End (before the last window). The first
//          order begins the work, each one of a higher revision (core/model/measure_order.h) changes it.
// Units    times in ns of CLOCK_MONOTONIC.
// Errors   as notices.
// Threads  Order is thread-safe; the rest from the session's thread.
// Bounds   the newest order waits, no other: what it replaces is never looked for.
#ifndef AGENT_PIPELINE_SESSION_EXPERIMENT_H_
#define AGENT_PIPELINE_SESSION_EXPERIMENT_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "agent/pipeline/experimenter.h"
#include "agent/pipeline/loop_sites.h"
#include "agent/pipeline/resolver.h"
#include "core/base/mutex.h"

namespace perfd::agent {

class SessionExperiment {
 public:
  SessionExperiment(MakeExperimenter make, Resolver* resolver)
      : make_(std::move(make)), resolver_(resolver) {}

  void Order(MeasureOrder order);
  // True when an order waits for the images of the ranks: call Locate with them.
  bool Waits() const;
  // `request` without ranks and order, which are filled in here.
  void Locate(std::vector<ProcessImage> images, ExperimentRequest request);
  // Begins as soon as the loops are found.
  void Advance();
  // Also what sampling costs before the first order comes out of the budget. A node whose order has a part of the request's
  // budget owes that part of it: sampling holds all nodes up side by side.
  void Charge(int64_t wall_ns, double requested_ratio);
  ExperimentUpdate Drain();
  void End();
  bool active() const { return experimenter_ != nullptr; }
  // Everything was found out that was asked: the session may end early.
  bool Finished() const;
  std::optional<RuntimeAddress> OriginalAddress(int32_t pid, RuntimeAddress address) const {
    return active() ? experimenter_->OriginalAddress(pid, address) : std::nullopt;
  }

 private:
  // Filled on the resolver's thread, which may outlive the session.
  struct Found {
    Mutex mutex;
    bool done ABSL_GUARDED_BY(mutex) = false;
    std::vector<RankLoops> ranks ABSL_GUARDED_BY(mutex);
  };

  void HandOnCharges();

  const MakeExperimenter make_;
  Resolver* const resolver_;
  mutable Mutex mutex_;
  std::optional<MeasureOrder> order_ ABSL_GUARDED_BY(mutex_);  // the newest
  bool fresh_ ABSL_GUARDED_BY(mutex_) = false;                 // not looked for yet
  bool ended_ = false;
  int64_t charged_ns_ = 0;                    // not yet handed on
  double requested_ratio_ = 0;                // of the request
  std::optional<ExperimentRequest> request_;  // waits for its loops
  std::shared_ptr<Found> found_;              // of the look under way
  std::unique_ptr<Experimenter> experimenter_;
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_SESSION_EXPERIMENT_H_
