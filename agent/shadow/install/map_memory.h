// agent/shadow/install/map_memory.h - the stop in which caches and region are mapped in a rank, where they were reserved.
//
// Shape    MapMemory does all of it in one list. Where it is not known whether the rank locks what it maps, a first call asks, and
//          changes nothing: such a rank is given its mappings in a second list, if its limit leaves it room beside them.
// Errors   those of RankHold::Stop; kFailedPrecondition: no room (CheckRoom).
// Source   mlockall(2) MCL_FUTURE; mm/mmap.c do_mmap: the limit of locked memory is looked at before what a shared anonymous mapping
//          may not be (MAP_GROWSDOWN: EINVAL).
#ifndef AGENT_SHADOW_INSTALL_MAP_MEMORY_H_
#define AGENT_SHADOW_INSTALL_MAP_MEMORY_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "agent/attach/hold_request.h"
#include "agent/shadow/rank/injected_rank.h"

namespace perfd::agent {

// Caches from this one on; of the first, with the region, and the last two results are those of OwnRightsOf.
absl::StatusOr<HoldReply> MapMemory(InjectedRank& rank, size_t first_cache);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_INSTALL_MAP_MEMORY_H_
