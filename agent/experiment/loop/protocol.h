// agent/experiment/loop/protocol.h - what caches and branch predictors hold before each run: which ways are compared with live, and
// how far from live the loop stays.
//
// Shape    warm first: back to back, everything is where the run before left it. Where the loop takes longer in the rank itself, one
//          shadow runs REF after each way of emptying caches. Where it takes less time there, its branches may be known to the rank, too.
//          Fidelity: REF's median over the live median, as the protocol was chosen by; its interval: both medians drawn again, with
//          shadows and live instances as clusters. A reason is given only where what is known shows it.
// Threads  thread-safe (pure).
// Source   intervals: core/analysis/cluster_median.h; reasons: docs/adr/0035-some-ranks-and-shared-lines.md.
#ifndef AGENT_EXPERIMENT_LOOP_PROTOCOL_H_
#define AGENT_EXPERIMENT_LOOP_PROTOCOL_H_

#include <vector>

#include "agent/experiment/loop/knowledge.h"

namespace perfd::agent {

// Whether runs shall stand at new places from the start: once it is known how long an instance is, for all of its runs.
bool MayUseNewPlacements(const LoopKnowledge& known);
bool NeedsPlacements(const LoopKnowledge& known);
// REF at one place until it knows its branches, then at others.
std::vector<RunSpec> PlacementRuns(const LoopKnowledge& known);
// A round of the same copy goes to another place each time, where that is wanted.
void Place(const LoopKnowledge& known, std::vector<RunSpec>& runs);
// REF in units of live above which the rank may know its branches.
inline constexpr double kTooSlow = 0.10;

bool NeedsEviction(const LoopKnowledge& known);
// kNothing first, then what empties more and more and may be like live.
std::vector<Evict> EvictionLevels(const LoopKnowledge& known);
std::vector<RunSpec> EvictionRuns(const LoopKnowledge& known);

Fidelity FidelityOf(const LoopKnowledge& known);

// Instances of a batch repeated, or each run on the next ones: what is repeated meets caches that hold its data, and predictors that know
// its branches; the next instances meet what the program has left there (docs/adr/0034-successive-instances.md).
inline constexpr int kSuccessiveWarmUps =
    12;  // a fork leaves little of the rank in the first levels
inline constexpr int kRepeatedRuns = 6, kSuccessiveRuns = 16;  // that compare the two
inline constexpr int kAloneRuns =
    60;  // successive instances that are timed one by one, as live ones are
bool NeedsSuccession(const LoopKnowledge& known);
// The traced runs that successive ones begin with.
std::vector<RunSpec> LookingAhead();
// REF as it is repeated now, then going on, then one by one.
std::vector<RunSpec> SuccessionRuns(const LoopKnowledge& known);

// Runs where the program itself comes to the loop, in a shadow that goes on through the code around it: there the caches are as they are
// live. Only of loops all of whose instances are alike.
inline constexpr int kNaturalWarmUps = 2;  // arrivals at which the shadow still copies pages
inline constexpr int kNaturalRuns = 6;     // that are compared with live
bool NeedsNatural(const LoopKnowledge& known);
std::vector<RunSpec> NaturalRuns(const LoopKnowledge& known);
// Until walks through page tables are as live; 0 where the program comes to the loop so seldom that they are.
int64_t NaturalWarmNs(const LoopKnowledge& known);

// Runs that nothing has prepared meet pages that the fork has left as if they had never been used, and the first use of each costs more than
// the program's own (a quarter of a microsecond, docs/adr/0040-natural-arrivals.md). Address, bytes of what such runs will touch, as far as it was traced: those that go on
// from each other touch as much again each time. None: runs are repeated.
std::vector<std::pair<uint64_t, uint64_t>> ReadOnce(const LoopKnowledge& known,
                                                    const std::vector<RunSpec>& runs);
int64_t ReadOnceNs(const LoopKnowledge& known, const std::vector<RunSpec>& runs);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_LOOP_PROTOCOL_H_
