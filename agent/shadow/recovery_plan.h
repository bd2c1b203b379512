// agent/shadow/recovery_plan.h - what threads of the rank itself run in recovery mode, and what came of it.
//
// Shape    RecoveryPlan is part of ShadowPlan, whose `runs` then are one round: each entry of a thread runs the next of them
//          once, then the loop itself. RecoveryResult x limit lie where shadows leave their results; nothing else of the
//          shadow's part is used. Strata is kept in the payload's own part of each thread block, RunInSitu in each record.
// Units    ticks of the TSC; distances as in agent/variant/recovery/trip_count.h.
// Threads  the agent writes the plan while no site is armed or in recovery, RegionHeader::in_situ is 0 and no record says kInCopy;
//          threads only read it.
// Source   our own layout; design section 6, "Modes". Any change raises kShadowLayoutVersion.
#ifndef AGENT_SHADOW_RECOVERY_PLAN_H_
#define AGENT_SHADOW_RECOVERY_PLAN_H_

#include <cstdint>

namespace perfd::agent {

inline constexpr uint32_t kMostRecoveries = 8192;  // runs of one arming
inline constexpr uint32_t kMaxStrata = 8;          // distances that one thread tells apart
inline constexpr uint32_t kNoWord = 0xff;

struct RecoveryPlan {
  uint32_t limit;  // runs of all threads together; 0: this is no plan for recovery
  uint32_t skips;  // entries without a run after which it ends, too
  uint8_t
      plus;  // words of SavedRegisters, or kNoWord: distance = plus - minus + offset, under the mask
  uint8_t minus;
  uint16_t reserved16;
  uint32_t reserved32;
  uint64_t offset;
  uint64_t mask;
  uint64_t most_distance;  // an entry farther from its end passes through
  uint64_t most_ticks;     // added by all runs together
};

struct RecoveryResult {
  uint64_t cycles;  // of the copy
  uint64_t
      original;  // of the loop itself, right afterwards; 0: it was not left where time is taken
  uint64_t iterations;
  uint64_t distance;
  uint64_t added;  // ticks from the entry until the loop itself may begin
  uint32_t tid;
  uint32_t turn;  // of this thread and distance: which run of which round
  uint32_t cpu;
  uint32_t generation;  // written last but for `original`
  uint64_t reserved;
};

// One distance of one thread has its own turn, so that a variant and its neighbours are of instances of the same length.
struct Stratum {
  uint64_t distance;
  uint32_t turns;
  uint32_t reserved;
};
struct Strata {
  uint32_t generation;
  uint32_t count;
  uint32_t pair;  // 0, or generation << 16 | number of the result + 1: the loop itself is under way
  uint32_t reserved;
  Stratum of[kMaxStrata];
};

// A thread of the rank that runs a copy itself, in recovery mode, and what of its own it gets back afterwards. Where a handler of
// the program jumps out of the copy, the thread does not come back for it: payload/jumped.cc, agent/shadow/recovery/give_back.h.
enum : uint32_t { kNotInside = 0, kInCopy = 1, kJumped = 2 };
struct RunInSitu {
  uint32_t inside;  // atomic: written last
  uint32_t reserved;
  uint64_t signals;        // its mask; MaskInRun(signals) while a copy runs
  uint64_t gs_base;        // that of its block while a copy runs
  uint64_t stack_pointer;  // of the loop at its header
  uint64_t other_stack;    // sigaltstack(2); no bytes: none
  uint64_t other_stack_bytes;
};
// Stay open: the program may have a handler that makes a page appear, as it would for the loop itself.
inline constexpr uint64_t kMemoryFaults = uint64_t{1} << 6 | uint64_t{1} << 10;  // SIGBUS, SIGSEGV
inline constexpr uint64_t kNeverBlocked = uint64_t{1} << 8 | uint64_t{1} << 18;  // SIGKILL, SIGSTOP
// The C library uses these itself and takes them out of every mask that a program sets: nptl, SIGCANCEL and SIGSETXID.
inline constexpr uint64_t kOfTheLibrary = uint64_t{1} << 31 | uint64_t{1} << 32;
constexpr uint64_t MaskInRun(uint64_t signals) {
  return ~kMemoryFaults | signals;
}

static_assert(sizeof(RecoveryPlan) == 48 && sizeof(RecoveryResult) == 64);
static_assert(sizeof(Strata) == 16 + 16 * kMaxStrata && kMostRecoveries < 0xffff);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RECOVERY_PLAN_H_
