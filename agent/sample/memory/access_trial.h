// agent/sample/memory/access_trial.h - whether events of accesses can be sampled beside the event of time, tried on this thread.
//
// Shape    TryAccesses opens them as a thread of a job would have them, runs for kTrial, and closes them.
// Rules    an event that does not open beside the others is left out; where the event of time had to take turns with them, all
//          are: what it counts would be less than what was used, and nobody would know.
// Threads  thread-safe.
// Source   perf_event_open(2), "Reading results" (time_running); kernel/events/core.c, ctx_flexible_sched_in.
#ifndef AGENT_SAMPLE_MEMORY_ACCESS_TRIAL_H_
#define AGENT_SAMPLE_MEMORY_ACCESS_TRIAL_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "agent/sample/event_choice.h"
#include "agent/sample/sampling_event.h"

namespace perfd::agent {

struct AccessTrial {
  static constexpr uint64_t kTrialNs = 4'000'000;  // of CPU time
  static constexpr double kLeastShare = 0.99;      // of it, in which the event of time ran

  std::vector<AccessEvent> open{};
  absl::Status why_not_all{};  // of the last that is left out
};

// `time`: without accesses.
AccessTrial TryAccesses(const ChosenEvent& time, const std::vector<AccessEvent>& events);

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_MEMORY_ACCESS_TRIAL_H_
