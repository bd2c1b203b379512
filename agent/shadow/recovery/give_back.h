// agent/shadow/recovery/give_back.h - what a thread gets back that has jumped out of a copy (recovery mode).
//
// Shape    PlanGiveBack reads the records and makes one op of a hold, which looks at the threads themselves; ReadGiveBack does so
//          for whoever has no RegionAccess of the rank (healing). Threads still inside, or whose handler may be, are passed over.
// Errors   ReadGiveBack: those of Memory; kFailedPrecondition: the region's records do not fit into it.
// Source   agent/shadow/recovery_plan.h, RunInSitu; agent/shadow/payload/jumped.cc does the same at a thread's next entry.
#ifndef AGENT_SHADOW_RECOVERY_GIVE_BACK_H_
#define AGENT_SHADOW_RECOVERY_GIVE_BACK_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/attach/hold_request.h"
#include "agent/shadow/injection.h"
#include "agent/shadow/region_access.h"

namespace perfd::agent {

struct GiveBackPlan {
  GiveBackOp op;
  std::vector<uint32_t> records;  // index of each entry's
};

GiveBackPlan PlanGiveBack(const std::vector<ThreadRecord>& records, const RegionAccess& region,
                          const std::vector<PcRange>& caches);

// Of a region of this layout that has been filled in; the plan is empty when nobody is inside.
absl::StatusOr<GiveBackPlan> ReadGiveBack(const Injection& injection, const Memory& memory);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RECOVERY_GIVE_BACK_H_
