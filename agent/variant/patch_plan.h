// agent/variant/patch_plan.h - where the jump to the trampoline goes in the original text.
//
// Shape    a direct jump of five bytes at the header; `covered` are the instructions it cuts, `bytes` what was there.
// Errors   FailedPrecondition: the loop is shorter than the jump, another branch leads or may lead into it, a call is under it.
// Source   Intel SDM vol. 2, JMP: E9 rel32.
#ifndef AGENT_VARIANT_PATCH_PLAN_H_
#define AGENT_VARIANT_PATCH_PLAN_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/variant/loop_code.h"

namespace perfd::agent {

struct CoveredInstruction {
  uint64_t address = 0;
  uint8_t length = 0;
};

struct PatchPlan {
  uint64_t address = 0;  // the header
  std::array<uint8_t, kJumpBytes> original{};
  std::vector<CoveredInstruction> covered;
  uint64_t covered_end = 0;  // end of the last covered instruction

  // The jump to `target`; OutOfRange when it is farther than 2 GiB.
  absl::StatusOr<std::array<uint8_t, kJumpBytes>> Jump(uint64_t target) const;
};

// Whether code outside the function may come back under the jump, so that LoopCode::far_branches must be known.
bool NeedsFarBranches(const LoopCode& loop);

absl::StatusOr<PatchPlan> PlanPatch(const LoopCode& loop);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_PATCH_PLAN_H_
