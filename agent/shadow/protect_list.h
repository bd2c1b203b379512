// agent/shadow/protect_list.h - what of a shadow's address space others could see change. Pure.
//
// Shape    writable shared mappings become read-only; device mappings, and what a fork sees differently, inaccessible; our own region
//          stays. Neighbours are merged.
// Errors   kResourceExhausted: more ranges than a plan holds.
// Source   hazards, "Forking"; design section 6, "Write shared memory".
#ifndef AGENT_SHADOW_PROTECT_LIST_H_
#define AGENT_SHADOW_PROTECT_LIST_H_

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/attach/hold_request.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/forking/memory_areas.h"
#include "agent/shadow/shadow_plan.h"

namespace perfd::agent {

absl::StatusOr<std::vector<ProtectRange>> ProtectList(
    const std::vector<MapEntry>& maps, const PcRange& region,
    std::span<const ForkedDifferently> differs = {});

// The parts of `ranges` that a shadow can save and write back: private writable memory that is not ours.
std::vector<RestoreRange> ClipRestores(const std::vector<MapEntry>& maps,
                                       const std::vector<RestoreRange>& ranges);

// Of the process: what RLIMIT_AS counts.
uint64_t MappedBytes(const std::vector<MapEntry>& maps);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_PROTECT_LIST_H_
