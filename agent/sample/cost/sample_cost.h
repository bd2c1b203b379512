// agent/sample/cost/sample_cost.h - what one sample costs the thread that is interrupted.
//
// Shape    MeasureSampleCost(event) -> ns per sample. Runs on the calling thread for 10 ms; for 50 ms when samples do
//          not arrive.
// Method   the thread reads the clock in a loop while it is sampled at a high rate: the interrupt is the gap between
//          two readings that the sample's own time stamp falls into. Median gap minus median reading; what the interrupt
//          costs afterwards in caches is not seen.
// Errors   kUnavailable: too few samples arrived to say; else as opening the event.
// Threads  any; blocks the caller.
#ifndef AGENT_SAMPLE_COST_SAMPLE_COST_H_
#define AGENT_SAMPLE_COST_SAMPLE_COST_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/sample/event_choice.h"

namespace perfd::agent {

absl::StatusOr<uint64_t> MeasureSampleCost(const ChosenEvent& event);

// The pure part. `readings`: times in ns, ascending; `samples`: times of samples, ascending.
absl::StatusOr<uint64_t> CostFromGaps(const std::vector<int64_t>& readings,
                                      const std::vector<int64_t>& samples);

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_COST_SAMPLE_COST_H_
