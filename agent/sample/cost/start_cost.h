// agent/sample/cost/start_cost.h - what an event on a thread costs each time the thread starts another one.
//
// Shape    MeasureStartCost(event) -> ns per start. The caller starts threads that end at once and waits for each, now with the event, now
//          without. Takes about 30 ms, at most 1 s.
// Method   agent/sample/cost/rounds.h. The end and the switches of such a thread are in it, as nobody counts those of threads that are
//          gone; so is a switch of the starter, which counts twice then. Writing into a ring is not. Threads of a team are farther
//          apart: as with a switch, each costs kFarFactor times as much. An upper estimate.
// Errors   kDeadlineExceeded: the CPU is too busy to say; kResourceExhausted: no thread can be started; else as opening the event.
// Threads  any; blocks the caller.
// Source   kernel/events/core.c perf_event_fork, perf_event_task; docs/adr/0051-starts-of-threads.md.
#ifndef AGENT_SAMPLE_COST_START_COST_H_
#define AGENT_SAMPLE_COST_START_COST_H_

#include "absl/status/statusor.h"
#include "agent/sample/event_choice.h"

namespace perfd::agent {

absl::StatusOr<double> MeasureStartCost(const ChosenEvent& event);

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_COST_START_COST_H_
