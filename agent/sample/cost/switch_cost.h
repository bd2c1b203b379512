// agent/sample/cost/switch_cost.h - what an event on a thread costs each time the thread is put on a CPU.
//
// Shape    MeasureSwitchCost(event) -> ns per switch (off and on again). Two threads of its own, on the caller's CPU, wake each
//          other in turn, now with the event, now without. Takes about 20 ms, at most 2 s.
// Method   agent/sample/cost/rounds.h; on one CPU the two never leave the kernel's caches; on the way to an idle CPU and back, as at a barrier, a switch
//          costs kFarFactor times as much.
// Errors   kDeadlineExceeded: the CPU is too busy to say; else as opening the event.
// Threads  any; blocks the caller.
// Source   docs/benchmarks/constants.md#kfarfactor: 1.1 to 1.7 us on one CPU, some 3 us at barriers.
#ifndef AGENT_SAMPLE_COST_SWITCH_COST_H_
#define AGENT_SAMPLE_COST_SWITCH_COST_H_

#include "absl/status/statusor.h"
#include "agent/sample/event_choice.h"

namespace perfd::agent {

inline constexpr double kFarFactor = 2;

absl::StatusOr<double> MeasureSwitchCost(const ChosenEvent& event);

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_COST_SWITCH_COST_H_
