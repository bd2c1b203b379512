// agent/shadow/rank/shadow_charges.h - what the rank has paid so far, by kind of disturbance.
//
// Units    ns of wall time of the rank, unless the name says otherwise.
// Source   docs/benchmarks/constants.md#kslowentryns.
#ifndef AGENT_SHADOW_RANK_SHADOW_CHARGES_H_
#define AGENT_SHADOW_RANK_SHADOW_CHARGES_H_

#include <cstdint>
#include <vector>

#include "agent/shadow/protocol.h"
#include "agent/shadow/rank/injected_code.h"
#include "agent/shadow/shadow_plan.h"
#include "core/model/loop_measurement.h"

namespace perfd::agent {

// An entry that saves its state, or its timed exit; no measurement is recorded
// (docs/benchmarks/constants.md#kslowentryns).
inline constexpr int64_t kSlowEntryNs = 400;

void ChargeStops(const std::vector<int64_t>& stops_ns, InjectionCost* cost);

// Of each thread that has come to the site since `before` was read, how often.
std::vector<uint64_t> NewEntries(const std::vector<ThreadRecord>& before,
                                 const std::vector<ThreadRecord>& after, uint32_t site);
// Of the thread that came most often.
uint64_t MostEntries(const std::vector<uint64_t>& new_entries);

// While a site is armed every entry is a slow one; and who came to a gathering that failed waited in vain, at most so long. What
// shadows used of CPUs is counted whatever became of them; more than their team can have used is not believed.
void ChargeSite(const Site& now, const ShadowPlan& plan, PatchSite* site, InjectionCost* cost);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RANK_SHADOW_CHARGES_H_
