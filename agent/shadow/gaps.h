// agent/shadow/gaps.h - where in a rank's address space there is room for code within reach of its loops. Pure.
//
// Shape    a free range below the executable and its neighbours first (what is above may be where the heap grows to).
// Units    bytes, run-time addresses, whole pages.
// Errors   kFailedPrecondition: no room within reach.
// Source   Intel SDM vol. 2, JMP rel32 (2 GiB); brk(2): the heap grows upwards from behind the executable.
#ifndef AGENT_SHADOW_GAPS_H_
#define AGENT_SHADOW_GAPS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/procfs/procfs.h"

namespace perfd::agent {

struct Reach {
  uint64_t low = 0;  // everything from low to high must be within 2 GiB of every byte of the gap
  uint64_t high = 0;
};

// Addresses that belong together: sorted into at most `most` groups that each fit into one reach with room to spare.
absl::StatusOr<std::vector<Reach>> GroupByReach(std::vector<Reach> spans, size_t most);

absl::StatusOr<uint64_t> FindGap(std::span<const MapEntry> maps, const Reach& reach,
                                 uint64_t bytes);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_GAPS_H_
