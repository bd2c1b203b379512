// agent/shadow/recovery_plan.h - what threads of the rank itself run in recovery mode, and what came of it.
//
// Shape    RecoveryPlan is part of ShadowPlan, whose `runs` then are one round: each entry of a thread runs the next of them
//          once, then the loop itself. RecoveryResult x limit lie where shadows leave their results; nothing else of the
//          shadow's part is used. Strata is kept in the payload's own part of each thread block.
// Units    ticks of the TSC; distances as in agent/variant/recovery/trip_count.h.
// Threads  the agent writes the plan while RegionHeader::in_place is 0 and no site is armed or in recovery; threads only read it.
// Source   our own layout; design section 6, "Modes". Any change raises kShadowLayoutVersion.
#ifndef AGENT_SHADOW_RECOVERY_PLAN_H_
#define AGENT_SHADOW_RECOVERY_PLAN_H_

#include <cstdint>

namespace perfd {

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
enum : uint32_t { kNotInside = 0, kInCopy = 1, kJumped = 2 };
struct Strata {
  uint32_t generation;
  uint32_t count;
  uint32_t pair;  // 0, or generation << 16 | number of the result + 1: the loop itself is under way
  uint32_t
      inside;  // in a copy, and counted in RegionHeader::in_place; or a handler has jumped out of it
  Stratum of[kMaxStrata];
};

static_assert(sizeof(RecoveryPlan) == 48 && sizeof(RecoveryResult) == 64);
static_assert(sizeof(Strata) == 16 + 16 * kMaxStrata && kMostRecoveries < 0xffff);

}  // namespace perfd

#endif  // AGENT_SHADOW_RECOVERY_PLAN_H_
