// agent/shadow/run/in_situ_threads.h - threads of the rank that are still at the last rendezvous or inside the last run in place.
//
// Errors   kUnavailable: somebody still is, after some 0.2 s; those of RankHold::Stop.
// Source   agent/shadow/recovery_plan.h, RunInSitu; docs/adr/0021-jumps-out-of-copies.md.
#ifndef AGENT_SHADOW_RUN_IN_SITU_THREADS_H_
#define AGENT_SHADOW_RUN_IN_SITU_THREADS_H_

#include "absl/status/status.h"
#include "agent/shadow/rank/injected_rank.h"

namespace perfd::agent {

// OK: nobody reads the plan any more. Who has jumped out of a copy is given back what the run took.
absl::Status AwaitNobodyInSitu(InjectedRank& rank);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RUN_IN_SITU_THREADS_H_
