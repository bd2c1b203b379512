// agent/shadow/region_injection.h - what was injected into a rank, as the region in the rank itself tells it.
//
// Shape    for ranks whose journal is lost. The bytes are the rank's own: every count and address is checked.
// Errors   kNotFound: there is no region of ours; kFailedPrecondition: there is one of another version or a damaged one.
#ifndef AGENT_SHADOW_REGION_INJECTION_H_
#define AGENT_SHADOW_REGION_INJECTION_H_

#include "absl/status/statusor.h"
#include "agent/shadow/injection.h"

namespace perfd::agent {

// `own_region`: where the caller's own begins, which is passed over; 0: none.
absl::StatusOr<Injection> ReadInjectionFromRank(int32_t pid, uint64_t own_region = 0);

// Two agents may have looked at the same moment and seen nobody. Each shows its region before it looks again, so at least one of
// them sees the other before any jump is written.
absl::Status RefuseOthers(int32_t pid, uint64_t own_region);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_REGION_INJECTION_H_
