// agent/sample/cost/sampling_costs.h - what sampling costs on this node, measured once for each event.
//
// Shape    Of(event) measures when an event is asked for the first time (some 60 ms of this CPU, at most some 3 s) and remembers: profiles that follow
//          one another do not pay again. What could not be measured is tried again by the next one.
// Units    ns.
// Threads  thread-safe; who asks meanwhile waits.
#ifndef AGENT_SAMPLE_COST_SAMPLING_COSTS_H_
#define AGENT_SAMPLE_COST_SAMPLING_COSTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "agent/sample/event_choice.h"
#include "core/base/mutex.h"

namespace perfd::agent {

struct SamplingCost {
  absl::StatusOr<uint64_t> sample_ns;  // of a sample
  absl::StatusOr<double> switch_ns;    // of a switch of a sampled thread
  absl::StatusOr<double> start_ns;     // of a thread that a sampled one starts
};

class SamplingCosts {
 public:
  using Measure = std::function<SamplingCost(const ChosenEvent& event)>;

  SamplingCosts();
  explicit SamplingCosts(Measure measure) : measure_(std::move(measure)) {}

  SamplingCost Of(const ChosenEvent& event);

 private:
  const Measure measure_;
  Mutex mutex_;
  std::map<std::string, SamplingCost> known_ ABSL_GUARDED_BY(mutex_);  // by the event's attributes
};

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_COST_SAMPLING_COSTS_H_
