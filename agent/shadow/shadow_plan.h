// agent/shadow/shadow_plan.h - what a shadow is asked to run, and what it answers.
//
// Shape    part of the shared region (agent/shadow/protocol.h): ShadowPlan is in the rank's part, ChildControl and the results in
//          the shadow's. A result is at [run x team + place in the team].
// Units    ticks are TSC ticks, ns are CLOCK_MONOTONIC; addresses are those of the rank.
// Threads  the agent writes the plan while no shadow is under way and reads the answers when Site::generation_done says so.
// Source   our own layout; design section 6. Any change raises kShadowLayoutVersion.
#ifndef AGENT_SHADOW_SHADOW_PLAN_H_
#define AGENT_SHADOW_SHADOW_PLAN_H_

#include <cstdint>

#include "agent/shadow/forking/trim_plan.h"
#include "agent/shadow/protocol.h"
#include "agent/shadow/recovery_plan.h"

namespace perfd::agent {

enum RunStatus : uint32_t {
  kRunNotRun = 0,
  kRunOk = 1,
  kRunFaulted = 2,
  kRunCutShort =
      3,  // of kRunSuccessive: the loop around ended before it had gone over all of its instances
};

enum : uint32_t {
  kRunSuccessive =
      1,  // of a batch: goes on where the last such run was left, unless that was cut short
  kRunLookAhead =
      2048,  // of a traced kRunSuccessive: two of them tell what the later ones will meet (payload/ahead.cc)
  kRunRestore =
      2,  // copy the restore ranges back before; of kRunNatural: after, with what the program had there at the fork
  kRunFtz = 4,     // flush denormal results
  kRunDaz = 8,     // denormal operands are zero
  kRunTrace = 16,  // reset the trace records before
  kRunLearn = 64,  // afterwards, note and bring back the lines that differ from what was put aside
  kRunInSitu = 128,  // may run in the rank itself; plans for shadows never say so
  kRunNatural =
      4096,  // before, the team goes on through the program until it comes to the loop again
  kRunBaseline = 1024,  // afterwards, keep what the trace says: others are held against it
  kRunPinned = 32,      // zero the slots of pinned operands before, which also brings them into L1
};
// What to evict before the run: an index into ShadowPlan::evict_bytes; 0: nothing.
inline constexpr uint32_t kRunEvictShift = 8;
inline constexpr uint32_t kRunEvictMask = 3;
// 1 + index into RunTables::trace_checks: afterwards the trace is held against the baseline. 0: it is not.
inline constexpr uint32_t kRunCheckShift = 16;
inline constexpr uint32_t kRunCheckMask = 0xff;

enum : uint32_t {
  kPlanPinCpu = 1,        // pin each member to the CPU it arrived on, if those differ
  kPlanWaitForAgent = 2,  // the shadow waits for ChildControl::go before it protects and runs
  kPlanTrim = 4,          // the leader asks for ranges to leave out before it forks
  kPlanSuccessive = 8,    // there are kRunSuccessive
  kPlanNatural = 16,      // there are kRunNatural
};
struct RunEntry {
  uint64_t copy;
  uint64_t iteration_limit;  // 0: none
  uint32_t flags;
  uint16_t self_first;  // RunTables::selves of this run
  uint16_t self_count;
  uint64_t instances = 0;  // of a chain; 0: the copy is none
  uint64_t turn = 0;       // of kRunSuccessive: where the copy goes on
};

// Before the run the u64 at `word` of the thread block becomes the address of the block + value.
struct SelfWord {
  uint32_t word;
  uint32_t reserved;
  int64_t value;
};

inline constexpr uint32_t kSharedOut = ~uint32_t{0};

struct RestoreRange {
  uint64_t address;
  uint64_t bytes;
  uint32_t
      owner;  // place in the team of the thread that writes it; kSharedOut: each restores a part
  uint32_t reserved;
};

// Lines side by side that runs change, and what was put aside of them.
struct RestoreLine {
  uint64_t address;
  uint64_t from;
  uint32_t bytes;
  uint32_t owner;  // whose cache it belongs into
};

// Which references a traced copy still accesses as the loop does, one bit each.
struct TraceCheck {
  uint64_t kept[kTraceCount / 64];
};

// Which references read and which write, one bit each; and how many kRunSuccessive follow the traced ones.
struct LookAhead {
  uint64_t reads[kTraceCount / 64];
  uint64_t writes[kTraceCount / 64];
  uint64_t runs;
};

// What single runs refer to.
struct RunTables {
  SelfWord selves[kMaxSelfWords];
  TraceCheck trace_checks[kMaxTraceChecks];
  LookAhead ahead;
  uint64_t warm_ticks;  // of kRunNatural: arrivals pass for so long before the first run
  uint64_t stretch_ns;  // of kRunNatural: most that may pass until the team comes to the loop again
  uint64_t references;  // of the copy that has most: no record beyond is looked at
};

struct ProtectRange {
  uint64_t address;
  uint64_t bytes;
  uint32_t protection;  // PROT_READ or PROT_NONE
  uint32_t why;         // WhyProtected; the shadow does not look
};

struct MemoryPlan {
  uint64_t evict_bytes[4];  // walked through by each thread
  uint64_t written_count;   // of restores, behind the first restore_count: only known to be written
  uint64_t read_count;      // of restores, behind both: each page is read once before the runs
  uint64_t mapped_bytes;    // of the shadow when the agent looked; 0: its memory has no bound
};

struct ShadowPlan {
  uint32_t site;
  uint32_t generation;
  uint32_t team;  // threads that must meet
  uint32_t retries;
  uint32_t flags;
  uint32_t run_count;
  uint32_t restore_count;
  uint32_t protect_count;
  uint64_t gather_ns;
  uint64_t shadow_ns;   // hard: the watchdog, and the rank's own kill
  uint64_t soft_ticks;  // no run starts later than this after the team has met
  uint64_t agent_wait_ns;
  MemoryPlan memory;
  RecoveryPlan recovery;
  RunEntry runs[kMaxRuns];
  RunTables tables;
  RestoreRange restores[kMaxRestores];
  ProtectRange protects[kMaxProtects];
  TrimControl trim;
};

struct FaultRecord {
  uint32_t signal;
  int32_t code;
  uint64_t address;
  uint64_t pc;
  uint16_t run;
  uint16_t thread;
  uint32_t reserved;
};

// What may be mapped in a shadow beside what was there and what the payload needs: more is refused to whoever asks.
inline constexpr uint64_t kShadowRoomBytes = 64 << 20;

// A system call that a shadow may not make, or a wait that nobody can end; it ended by it.
struct TrapRecord {
  uint32_t count;  // atomic: threads that came; the rest is of the first
  uint32_t call;
  uint64_t place;           // behind the instruction that called
  uint64_t return_address;  // of the call that the copy itself made last, if it made one
  uint64_t argument;        // the first; of a wait: the word
  uint16_t run;
  uint16_t thread;
  uint32_t reserved;
};

// What runs were seen to change of the ranges to restore.
struct LearntLines {
  uint64_t table;     // RestoreLine x kMaxLines; 0: no run learns
  uint64_t known;     // a byte per line of the ranges: noted already
  uint32_t count;     // atomic
  uint32_t overflow;  // atomic: there were more; whole ranges are restored
};

struct TeamBarrier {
  uint32_t count;
  uint32_t turn;  // atomic futex
};

// What the code of the program waits for inside a shadow, without an end of its own.
struct TeamWaits {
  uint32_t ended;  // atomic
  uint32_t reserved;
  struct {
    uint64_t word;   // atomic: address; 0: it does not wait
    uint64_t value;  // that keeps it waiting
  } of[kMaxTeam];    // by place in the team
};

struct OwnBuffers {
  uint64_t restores;  // address of what was put aside
  uint64_t bytes;     // of all that the payload has mapped
};

enum ChildDone : uint32_t {
  kChildRunning = 0,
  kChildFinished = 1,
  kChildSetupFailed = 2,
  kChildWatchdog = 3,
  kChildFaulted = 4,
  kChildTrapped = 5,
  kChildLocked = 6
};
enum SetupStep : uint32_t {
  kStepNone = 0,
  kStepSignals = 1,
  kStepProtect = 2,
  kStepBuffer = 3,
  kStepClone = 4,
  kStepAgent = 5,
  kStepPlan = 6,
  kStepFilter = 7
};

// The way of the team through the program, from one arrival at the loop to the next.
struct Stretches {
  uint64_t left_ticks;
  uint64_t longest_ticks;
};

struct RunOrders {
  uint32_t stop;             // no further run
  uint32_t must_start_anew;  // what kRunSuccessive write may be read by later ones: none counts
  uint32_t warm;             // runs may be made from this arrival on
  uint32_t reserved;
  Stretches stretches;  // may end it all
};

struct alignas(64) ChildControl {
  uint32_t done;  // atomic futex: ChildDone
  uint32_t error_step;
  int32_t error;  // errno
  uint32_t generation;
  uint32_t waiting;  // atomic: the shadow is up and waits for `go`
  uint32_t go;       // atomic futex: written by the agent
  uint32_t current_run;
  uint32_t runs_done;
  uint32_t fault_count;
  uint32_t team;
  FaultRecord fault;
  TrapRecord trap;
  alignas(64) TeamBarrier barrier;
  RunOrders orders;
  uint32_t pin;  // every member goes to the CPU it arrived on
  TeamWaits waits;
  alignas(64) uint64_t begin_tsc;  // the team has met: soft_ticks count from here, before the fork
  uint64_t deadline_ns;            // shadow_ns later
  uint64_t ready_tsc;              // the team is rebuilt
  uint64_t end_tsc;
  OwnBuffers buffers;
  LearntLines lines;
  uint32_t tids[kMaxTeam];     // of the rank's threads, by place in the team
  uint16_t records[kMaxTeam];  // index of the record and block
};

inline constexpr uint16_t kPathDiffers = 0xffff;
struct RunResult {
  uint64_t cycles;
  uint64_t iterations;
  uint64_t start;
  uint16_t cpu;
  // Of a checked trace: 1 + the first reference that differs from the baseline, kPathDiffers where only the way does; 0: none.
  uint16_t differing;
  uint32_t status;
  uint64_t instances = 0;     // of a chain, begun; 0: it is none
  uint64_t inner_passes = 0;  // of copies that count: passes of all loops inside the loop
};

static_assert(sizeof(RunEntry) == 40 && sizeof(RestoreRange) == 24 && sizeof(ProtectRange) == 24);
static_assert(sizeof(RunResult) == 48 && sizeof(FaultRecord) == 32 && sizeof(TrapRecord) == 40);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_SHADOW_PLAN_H_
