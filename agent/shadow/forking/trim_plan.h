// agent/shadow/forking/narrow_plan.h - how a leader asks the agent what its fork may leave out.
//
// Shape    part of ShadowPlan (agent/shadow/shadow_plan.h).
// Units    bytes, addresses of the rank.
// Threads  the leader asks while its team stands still; the agent writes the ranges, then `answer`.
// Source   our own layout; docs/adr/0013-narrow-forks.md. Any change raises kShadowLayoutVersion.
#ifndef AGENT_SHADOW_FORKING_NARROW_PLAN_H_
#define AGENT_SHADOW_FORKING_NARROW_PLAN_H_

#include <cstdint>

#include "agent/shadow/protocol.h"

namespace perfd {

// Why a fork that was to be narrowed did not happen.
enum NarrowStep : int32_t {
  kNarrowNoAnswer = 1,
  kNarrowRefused = 2,   // by the agent: its own text says why
  kNarrowTooLate = 3,   // members might go on at any time
  kNarrowNotMarked = 4  // madvise
};
enum : uint32_t { kNarrowGo = 1, kNarrowNo = 2, kNarrowAnswerMask = 3 };
// An answer is good for one generation of the plan only.
constexpr uint32_t NarrowAnswer(uint32_t generation, uint32_t answer) {
  return generation << 2 | answer;
}
constexpr bool IsAnswerTo(uint32_t generation, uint32_t word) {
  return (word & kNarrowAnswerMask) != 0 &&
         word == NarrowAnswer(generation, word & kNarrowAnswerMask);
}

struct NarrowRange {
  uint64_t address;
  uint64_t bytes;
};

// While `waiting`, the whole team stands still in the payload. The agent writes the ranges, then `answer`.
struct NarrowControl {
  uint32_t waiting;  // atomic: set by the leader, once
  uint32_t answer;   // atomic: NarrowAnswer() of kNarrowGo, kNarrowNo
  uint32_t marked;  // atomic: 1 while memory of the rank may bear our marks; no member goes on then
  uint32_t stuck;   // ranges whose mark the kernel did not take back
  uint32_t count;
  uint32_t reserved;
  NarrowRange ranges[kMaxNarrows];
};

static_assert(sizeof(NarrowControl) == 24 + 16 * kMaxNarrows);

}  // namespace perfd

#endif  // AGENT_SHADOW_FORKING_NARROW_PLAN_H_
