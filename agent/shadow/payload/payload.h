// agent/shadow/payload/payload.h - the pieces of the payload: code that lives in the rank, without libc, without writable globals.
//
// Shape    a trampoline calls payload_slow_entry (entry.S), which calls payload_enter: count, or join a rendezvous (meet.cc); the
//          last to join forks (lead.cc); the copy rebuilds the team (child.cc, filter.cc, signals.cc) and runs the plan (runs.cc).
// Threads  anything here runs in any thread of the rank, at any loop entry. It uses at most about 1 KB of the thread's stack.
// Errors   on any doubt a thread passes through: it runs the original loop.
#ifndef AGENT_SHADOW_PAYLOAD_PAYLOAD_H_
#define AGENT_SHADOW_PAYLOAD_PAYLOAD_H_

#include <cstdint>

#include "agent/shadow/payload/block_state.h"
#include "agent/shadow/payload/kernel.h"
#include "agent/shadow/protocol.h"
#include "agent/shadow/region_layout.h"
#include "agent/shadow/shadow_plan.h"

// Declarations too: a symbol that could come from elsewhere would be reached through a table of absolute addresses.
#pragma GCC visibility push(hidden)

extern "C" {
uint64_t payload_enter(uint64_t tagged_site, perfd::agent::SavedRegisters* frame, uint64_t ticks);
void payload_run(uint64_t block);
void payload_recover(uint64_t block);
[[noreturn]] void payload_arrive(uint64_t block);
uint64_t payload_resume(uint64_t block, perfd::agent::SavedRegisters* frame);
int64_t payload_clone(uint64_t flags, uint64_t stack_top, uint64_t tls, void (*function)(uint64_t),
                      uint64_t argument);
void payload_exit_stub();
void payload_system_call();
void payload_restorer();
}

namespace perfd::agent {

inline uint64_t RegionAddress(RegionHeader* region) {
  return AddressOf(region);
}
inline uint32_t BlockCount(RegionHeader* region) {
  uint32_t count = Load(region->block_count);
  return count < kMaxTeam ? count : kMaxTeam;
}
inline ShadowPlan* PlanOf(RegionHeader* region) {
  return At<ShadowPlan>(AddressOf(region) + kPlanOffset);
}
inline Site* SiteOf(RegionHeader* region, uint32_t index) {
  return At<Site>(AddressOf(region) + kSitesOffset) + (index < kMaxSites ? index : 0);
}
inline LiveTurns* TurnsOf(RegionHeader* region, uint32_t site) {
  return At<LiveTurns>(AddressOf(region) + kTurnsOffset) + (site < kMaxSites ? site : 0);
}
inline ThreadRecord* RecordOf(RegionHeader* region, uint32_t index) {
  return At<ThreadRecord>(AddressOf(region) + kRecordsOffset) + index;
}
inline ChildControl* ChildOf(RegionHeader* region) {
  return At<ChildControl>(AddressOf(region) + ChildOffset(BlockCount(region)));
}
inline RunResult* ResultsOf(RegionHeader* region) {
  return At<RunResult>(AddressOf(region) + ResultsOffset(BlockCount(region)));
}
inline uint64_t BlockOf(RegionHeader* region, uint32_t index) {
  return AddressOf(region) + BlockOffset(BlockCount(region), index);
}
inline BlockState* StateOf(uint64_t block) {
  return At<BlockState>(block + kBlockPayload);
}

inline TrimmedOut* LeftOutOf(uint64_t block) {
  return At<TrimmedOut>(block + kBlockLeftOut);
}
inline Strata* StrataOf(uint64_t block) {
  return At<Strata>(block + kBlockStrata);
}

// The agent need not look all the time: it sleeps until this, or until it is to look again anyway.
inline void NotifyAgent(RegionHeader* region) {
  FetchAdd(region->doorbell, 1);
  FutexWakeAll(&region->doorbell);
}

// recover.cc: an entry in recovery mode. What payload_enter returns: block | kRecoverTag, or 0: no run at this entry.
inline constexpr uint64_t kRecoverTag = 1, kArriveTag = 2;
struct Entry {
  RegionHeader* region;
  Site* site;
  ThreadRecord* record;
  uint32_t index;  // of the record
  SavedRegisters* frame;
  uint64_t ticks;
};
uint64_t BeginRecovery(const Entry& entry);
uint64_t StackPointerOf(SavedRegisters* frame);  // of the loop at its header
void SetSignals(uint64_t mask);
void SetGsBase(RegionHeader* region, uint64_t base);
// The loop itself was left. True when it belonged to a recovery.
bool EndPair(RegionHeader* region, ThreadRecord* record, uint32_t index, uint64_t ticks);

// jumped.cc. An entry of a thread that is still in a run: gives back what a handler that jumped out of it has taken along.
void EndJumped(const Entry& entry);
// The agent is gone, perhaps not for good, and somebody may have jumped: entries that do nothing else still look for them.
bool AwaitsJumped(RegionHeader* region, uint32_t mode);
struct AlternateStack {  // stack_t
  uint64_t address;
  int32_t flags;
  int32_t reserved;
  uint64_t bytes;
};

// runs.cc; both change the saved vector state, the first masks every exception in it
void MaskExceptions(BlockState* state, uint64_t block);
void PrepareRun(ShadowPlan* plan, const RunEntry& run, BlockState* state, uint64_t block);
void FillControl(uint64_t block);

// meet.cc
enum class Segment { kFs, kGs };
uint64_t SegmentBase(RegionHeader* region, Segment segment);
void Meet(RegionHeader* region, Site* site, ThreadRecord* record, SavedRegisters* frame);
void Finish(Site* site, ShadowPlan* plan, Outcome outcome, int32_t error);

// lead.cc: called by the last to join, with the site's state in kPhaseShadow.
struct Gathering {
  uint32_t round;
  uint32_t team;
};
void Lead(RegionHeader* region, Site* site, Gathering gathering, uint64_t own_block);

// narrow.cc: a fork that leaves memory out. Marks are in place only between these two, while the whole process stands still.
// Keeps a copy of what is marked in the leader's own block. 0, or why not.
int32_t BeginTrim(RegionHeader* region, ChildControl* child, ShadowPlan* plan, uint64_t block);
void EndTrim(ShadowPlan* plan, uint64_t block);
void FillHoles(ChildControl* child,
               uint64_t block);   // in the shadow: nothing else may be mapped there
bool MayLeave(ShadowPlan* plan);  // asked by a member whose time is up

// child.cc, in the shadow
void ShadowMain(uint64_t block);
[[noreturn]] void EndShadow(ChildControl* child, ChildDone how);
[[noreturn]] void FailShadow(ChildControl* child, SetupStep step, int64_t error);
uint64_t MapBuffer(ChildControl* child, uint64_t bytes);

void StartWatchdog(uint64_t ns);  // of what may still pass until the rank would end it all

// natural.cc, in the shadow: the team goes on by itself, through the program's own code, and is caught where it comes to the loop again.
void TakeControl(RegionHeader* region, ChildControl* child, ShadowPlan* plan);
[[noreturn]] void GoOn(RegionHeader* region, ChildControl* child, BlockState* state,
                       uint64_t block);
uint64_t Arrive(RegionHeader* region, SavedRegisters* frame);
// No run may begin that has no time to be followed by another arrival. Asked by the first thread, after an arrival.
bool IsLate(const ShadowPlan* plan, ChildControl* child);

// filter.cc, in the shadow
void LoadFilter(ChildControl* child, uint64_t scratch);

// calls.cc: a call of the program's own code, in the shadow. kMade: as far as the program can tell.
enum class Call { kMade, kForbidden, kNeverEnds };
struct CallArguments {
  int64_t number;
  uint64_t of[6];
};
Call MakeCall(RegionHeader* region, uint32_t place, const CallArguments& call, int64_t* result);

// signals.cc, in the shadow: once, and in each of its threads
void HandleSignals();
void OpenSignals();

// lines.cc; `index`: place in the team, which shares the work
void MapLines(ChildControl* child, ShadowPlan* plan, uint64_t total);
struct Share {
  uint64_t low, high;  // offsets into a range
};
Share ShareOf(const ChildControl* child, const RestoreRange& range, uint32_t index);
void LearnLines(ChildControl* child, ShadowPlan* plan, uint32_t index);
bool RestoreLines(ChildControl* child, uint32_t index);

// Records of a trace that are in use.
inline uint32_t ReferencesOf(const ShadowPlan* plan) {
  const uint64_t references = plan->tables.references;
  return references < kTraceCount ? static_cast<uint32_t>(references) : kTraceCount;
}

// ahead.cc, after each traced run that later ones go on from
void LearnAhead(RegionHeader* region, ChildControl* child, BlockState* state, uint64_t block);

// runs.cc, in every thread of the shadow
void ThreadMain(uint64_t block);
[[noreturn]] void RunOn(RegionHeader* region, ChildControl* child, BlockState* state,
                        uint64_t block);  // what is left of the plan, and the end

}  // namespace perfd::agent

#pragma GCC visibility pop

#endif  // AGENT_SHADOW_PAYLOAD_PAYLOAD_H_
