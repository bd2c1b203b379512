// agent/shadow/protocol.h - the memory that an agent and the code it put into a rank share.
//
// Shape    [RegionHeader][Site x kMaxSites][LiveRecord x kLiveSlots][LiveTurns x kMaxSites][ShadowPlan][ThreadRecord x blocks][InstructionPair x kMaxMapEntries]  "control": the rank and
//          the agent write it, a shadow sees it read-only;  [ChildControl][RunResult x kResultSlots][block x blocks]: shadows write.
//          Plain C++ without any library: the code that lives in the rank includes it too (freestanding).
// Units    ticks are TSC ticks, ns are CLOCK_MONOTONIC; addresses are those of the rank.
// Errors   neither side trusts a count or an index of the other: every one is capped where it is read.
// Threads  words marked "atomic" are shared between threads of the rank and the agent; the rest is written before Site::mode.
// Source   our own layout; design section 6. Any change raises kShadowLayoutVersion.
#ifndef AGENT_SHADOW_PROTOCOL_H_
#define AGENT_SHADOW_PROTOCOL_H_

#include <cstdint>

#include "agent/shadow/recovery_plan.h"
#include "agent/variant/thread_block.h"

namespace perfd::agent {

inline constexpr uint64_t kShadowMagic = 0x30776f6461685370;  // "pShadow0"
inline constexpr uint32_t kShadowLayoutVersion = 18;
inline constexpr uint32_t kMaxSites = 32;
inline constexpr uint32_t kMaxTeam = 256;  // thread records and blocks a region may have
inline constexpr uint32_t kMaxRuns = 512;
inline constexpr uint32_t kMaxRestores = 1024;
inline constexpr uint32_t kMaxLines =
    1 << 16;  // noted by runs that learn what to restore; and entries
inline constexpr uint32_t kMaxSelfWords = 256;
inline constexpr uint32_t kMaxTraceChecks =
    64;  // runs of a shadow whose traces are held against the loop's
inline constexpr uint32_t kMaxProtects = 512;
inline constexpr uint32_t kMaxTrims = 64;  // ranges that a fork may leave out
inline constexpr uint32_t kMaxMapEntries = 16384;
inline constexpr uint32_t kResultSlots = 32768;  // runs x team of one shadow may not exceed it
inline constexpr uint32_t kLiveSlots = 512;
inline constexpr uint32_t kMaxCaches =
    16;  // each place within reach of patched text, and each later batch of loops
inline constexpr uint32_t kMaxStolenBytes = 16;
inline constexpr uint32_t kAffinityWords = 16;  // 1024 CPUs

// Offsets of the doors of the payload blob. The second is the only one to the kernel.
inline constexpr uint32_t kPayloadExitStub = 0x00;
inline constexpr uint32_t kPayloadSystemCall = 0x48;
inline constexpr uint32_t kPayloadSlowEntry = 0x80;

// Site::mode. Anything else passes through. Trampolines look at the low byte only: recovery is timed as live entries are.
enum : uint32_t {
  kModeIdle = 0,
  kModeEntryCount = 1,
  kModeArmed = 2,
  kModeLive = 3,
  kModeLiveBatch = 4,    // a thread at a time runs the timed batch; while it does, the site is idle
  kModeArrival = 5,      // only in a shadow, which has its own copy of this: payload/natural.cc
  kModeRecovery = 0x103  // outside P1: recovery_plan.h
};

// Phases in the low byte of Site::state; bits 8..23 threads that joined; bits 32..63 the round.
enum : uint32_t { kPhaseIdle = 0, kPhaseArmed = 1, kPhaseGather = 2, kPhaseShadow = 3 };

enum Outcome : uint32_t {
  kOutcomeNone = 0,
  kOutcomeDone = 1,           // the plan ran to its end, or to the soft limit
  kOutcomeGatherTimeout = 2,  // the team did not meet, retries included
  kOutcomeForkFailed = 3,     // errno in last_error
  kOutcomeKilled = 4,         // overdue; killed by the rank
  kOutcomeDied = 5,           // ended without a word; wait status in last_error
  kOutcomeSetupFailed = 6,    // ChildControl::error says where
  kOutcomeWatchdog = 7,       // its own timer ended it; ChildControl::current_run says in which run
  kOutcomeFaulted = 8,        // too many faults
  kOutcomeTeamLost = 9,       // a member joined but never said so
  kOutcomeNotTrimmed =
      10,  // the fork was to leave memory out, and could not; TrimStep in last_error
  kOutcomeRightsChanged = 11,  // the thread that was to fork has not the rights of the admission
  kOutcomeTaken = 12,          // a thread of the program waited for any clone and reaped a shadow
  kOutcomeTrapped = 13,        // it made a system call that no shadow may; ChildControl::trap
  kOutcomeLocked = 14,  // its threads waited for what nobody in it can give; ChildControl::trap
};

// ChildControl::trap says by which call.
constexpr bool EndedByCall(uint32_t outcome) {
  return outcome == kOutcomeTrapped || outcome == kOutcomeLocked;
}

enum : uint32_t {
  kRegionHasFsgsbase = 1,
  kRegionHasRights = 2,
  kRegionShadowTaken = 4,  // by the payload: the program has reaped a shadow, no more are forked
};

// As a thread sees itself, in its own user name space. The payload compares before it forks: between a look of the agent and
// the fork a program may change them.
struct OwnRights {
  uint32_t uids[3];  // real, effective, saved
  uint32_t gids[3];
  uint64_t capabilities;  // permitted
  uint64_t dumpable;      // prctl PR_GET_DUMPABLE
};

struct RegionHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes;
  uint64_t region_bytes;
  uint64_t region_address;
  uint64_t cache_address[kMaxCaches];
  uint64_t cache_bytes[kMaxCaches];
  uint32_t pid;  // as the rank sees itself
  uint32_t flags;
  uint64_t start_ticks;  // of the process, /proc/PID/stat
  uint32_t site_count;
  uint32_t block_count;
  uint64_t xsave_mask;       // components to save; never tiles
  uint64_t heartbeat_ticks;  // atomic: written by the agent
  uint64_t stale_ticks;      // older than this: pass through
  uint32_t busy;             // atomic: site index + 1 of the shadow under way
  uint32_t orphan;  // atomic: pid of a shadow that was killed but could not be reaped in time
  uint64_t foreign_entries;  // atomic counters: entries from a process that is not `pid`
  uint64_t stale_entries;
  uint64_t no_block;      // no record left for a thread
  uint64_t busy_entries;  // entered again, from a signal handler
  uint64_t map_used;
  uint32_t live_next;   // atomic: records ever written to the ring
  uint32_t live_limit;  // the payload goes idle when live_next gets there
  uint32_t in_situ;     // atomic: threads that may read the plan; for those in a copy see RunInSitu
  uint32_t
      doorbell;  // atomic: goes up, with a futex wake, when what the agent may wait for has happened
  OwnRights rights;  // with kRegionHasRights
};

struct LiveRecord {
  uint64_t start;
  uint64_t end;
  uint32_t tid;
  uint32_t site;
  uint32_t turns;     // of a batch; 0: one instance
  uint32_t sequence;  // written last: live_next at this record + 1
};

// Batches in the rank, of one site. In lines of their own, for its thread writes them with every turn.
struct alignas(64) LiveTurns {
  int64_t left;     // how many more its thread may begin (thread_block.h kBlockInstancesLeft)
  uint32_t begun;   // how many it was to make
  uint32_t wanted;  // of the next one; 0: none is
  uint32_t thread;  // atomic; 0: nobody is in one
};

struct alignas(64) Site {
  uint32_t mode;  // atomic; the trampoline reads it
  uint32_t index;
  uint64_t region;           // address of the RegionHeader
  uint64_t state;            // atomic: phase, joined, round
  int64_t countdown;         // atomic: entries until the gathering opens
  uint32_t failures;         // atomic: gatherings of this arming that timed out
  uint32_t generation_done;  // atomic: ShadowPlan::generation when it is over, whatever the outcome
  uint32_t last_outcome;
  int32_t last_error;
  uint32_t child_pid;      // atomic
  uint32_t patched;        // 1 while the jump is in the text
  uint64_t shadow_cpu_us;  // CPU time of all shadows that the payload has reaped
  uint64_t fork_ticks;
  uint64_t pause_ticks;      // from the first arrival to the release
  uint64_t pause_end_ticks;  // TSC at the release
  uint64_t entries;          // atomic: slow entries
  uint64_t gathers;
  uint64_t timeouts;
  uint64_t shadows;
  uint64_t first_arrival;  // atomic
  uint64_t header_address;
  uint64_t trampoline;
  uint64_t live_copy;
  uint64_t timed_copy;
  uint64_t body_low, body_high;
  uint32_t stolen_bytes;
  uint32_t map_first, map_count;
  uint32_t ring_at;  // the low half of `entries` at which an entry count rings
  uint8_t original[kMaxStolenBytes];
  uint8_t written[kMaxStolenBytes];
  uint32_t recoveries;      // atomic: runs begun, or refused because there were enough
  uint32_t recovery_skips;  // atomic: entries in recovery mode without a run
  uint64_t recovery_ticks;  // atomic: added by runs
};

// In the order of the pushes of the slow entry, from the lowest address.
struct SavedRegisters {
  uint64_t r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rax, flags;
  uint64_t return_address, rcx;
  uint64_t rsp;  // filled in by the payload
};

struct alignas(64) ThreadRecord {
  uint32_t tid;   // atomic: owner
  uint32_t busy;  // atomic: 1 while the owner meets others or is in a copy; also when it has jumped
  uint32_t round;
  uint32_t slot;  // atomic: place in the team + 1, of `round`
  uint32_t cpu;
  uint32_t live_site;  // site index + 1
  uint64_t live_start;
  uint64_t fs_base;
  uint64_t wait_until_ns;  // of a member that waits: it stays at least so long; 0: not known yet
  uint32_t
      backoff_site;  // site index + 1 of the last gathering that this thread waited in for nothing
  uint32_t backoff_round;
  uint64_t backoff_until;  // TSC: before, others are to open the next one of that arming
  uint64_t affinity[kAffinityWords];
  uint64_t entries[kMaxSites];
  SavedRegisters registers;
  RunInSitu run;
};

struct InstructionPair {  // an instruction boundary of the original text and of the live copy
  uint64_t original;
  uint64_t copy;
};

static_assert(sizeof(RegionHeader) == 440 && sizeof(LiveRecord) == 32 && sizeof(Site) == 256);
static_assert(sizeof(ThreadRecord) == 640 && sizeof(InstructionPair) == 16);
static_assert(sizeof(SavedRegisters) == 144 && sizeof(RunInSitu) == 48);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_PROTOCOL_H_
