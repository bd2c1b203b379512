// agent/shadow/forking/trim_plan.h - how a leader asks the agent what its fork may leave out.
//
// Shape    part of ShadowPlan (agent/shadow/shadow_plan.h).
// Units    bytes, addresses of the rank.
// Threads  the leader asks while its team stands still; the agent writes the ranges, then `answer`.
// Source   our own layout; docs/adr/0013-narrow-forks.md. Any change raises kShadowLayoutVersion.
#ifndef AGENT_SHADOW_FORKING_TRIM_PLAN_H_
#define AGENT_SHADOW_FORKING_TRIM_PLAN_H_

#include <cstdint>

#include "agent/shadow/protocol.h"

namespace perfd::agent {

// Why a fork that was to be narrowed did not happen.
enum TrimStep : int32_t {
  kTrimNoAnswer = 1,
  kTrimRefused = 2,   // by the agent: its own text says why
  kTrimTooLate = 3,   // members might go on at any time
  kTrimNotMarked = 4  // madvise
};
enum : uint32_t { kTrimGo = 1, kTrimNo = 2, kTrimAnswerMask = 3 };
// An answer is good for one generation of the plan only.
constexpr uint32_t TrimAnswer(uint32_t generation, uint32_t answer) {
  return generation << 2 | answer;
}
constexpr bool IsAnswerTo(uint32_t generation, uint32_t word) {
  return (word & kTrimAnswerMask) != 0 && word == TrimAnswer(generation, word & kTrimAnswerMask);
}

struct TrimRange {
  uint64_t address;
  uint64_t bytes;
};

// While `waiting`, the whole team stands still in the payload. The agent writes the ranges, then `answer`.
struct TrimControl {
  uint32_t waiting;  // atomic: set by the leader, once
  uint32_t answer;   // atomic: TrimAnswer() of kTrimGo, kTrimNo
  uint32_t marked;  // atomic: 1 while memory of the rank may bear our marks; no member goes on then
  uint32_t stuck;   // ranges whose mark the kernel did not take back
  uint32_t count;
  uint32_t reserved;
  TrimRange ranges[kMaxTrims];
};

static_assert(sizeof(TrimControl) == 24 + 16 * kMaxTrims);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_FORKING_TRIM_PLAN_H_
