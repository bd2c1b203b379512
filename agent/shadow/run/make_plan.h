// agent/shadow/run/make_plan.h - from a request to the plan that the payload reads. Pure.
//
// Errors   kInvalidArgument: no such variant, or too large a shadow; kFailedPrecondition: too large a team;
//          kResourceExhausted: copies with too many pointers into the thread block; of a batch: why there is none.
// Units    ticks of the TSC, ns, bytes.
#ifndef AGENT_SHADOW_RUN_MAKE_PLAN_H_
#define AGENT_SHADOW_RUN_MAKE_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/shadow/forking/process_files.h"
#include "agent/shadow/rank/injected_code.h"
#include "agent/shadow/rank_injector.h"
#include "agent/shadow/shadow_plan.h"
#include "agent/shadow/timing/tick_clock.h"

namespace perfd::agent {

struct PlanLimits {
  uint32_t blocks = 0;  // threads of the rank that there is room for
  int64_t max_shadow_ns = 0;
};

// The runs that were asked for stand between runs of an empty copy: first, and two at the end.
absl::StatusOr<ShadowPlan> MakePlan(const PatchSite& site, const ShadowRequest& request,
                                    const PlanLimits& limits, const TickClock& ticks);
// selves: entries of RunTables::selves that are used so far.
absl::Status AddRun(const PatchSite& site, const RunSpec& request, ShadowPlan* plan,
                    uint32_t* selves);
// Of all forms.
std::vector<const CodeCopy*> AllCopies(const InstalledLoop& installed);
// Of a variant that the loop has.
absl::StatusOr<const CodeCopy*> CopyOf(const InstalledLoop& installed, const RunSpec& request);
// At most, in a shadow of a rank with this memory: a copy of each page that is written, of those that there are; and what is
// put aside.
uint64_t BytesWritten(const ShadowRequest& request, const MemoryFacts& memory);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RUN_MAKE_PLAN_H_
