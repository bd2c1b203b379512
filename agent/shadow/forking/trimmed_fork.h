// agent/shadow/forking/trimmed_fork.h - which memory of a rank a fork may leave out, because the loop does not touch it. Pure.
//
// Shape    large private anonymous mappings, less what the loop was seen to touch, less what the team's registers point to, less
//          stacks. Cuts are at 2 MB: a cut inside a huge page would split it for good.
// Units    bytes, addresses of the rank.
// Errors   kFailedPrecondition: this process must not be narrowed, and why.
// Source   madvise(2), MADV_DONTFORK; hazards, "Forking"; docs/adr/0013-narrow-forks.md.
#ifndef AGENT_SHADOW_FORKING_TRIMMED_FORK_H_
#define AGENT_SHADOW_FORKING_TRIMMED_FORK_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "agent/attach/hold_request.h"
#include "agent/shadow/forking/memory_areas.h"
#include "agent/shadow/forking/process_files.h"

namespace perfd::agent {

// What runs of a loop touch, of all threads.
struct Footprint {
  std::vector<PcRange> ranges;
  bool whole_areas = false;  // keep every mapping that it touches as a whole
  uint64_t around = 0;       // keep at least as much on both sides of what registers point to
};

// Of the team at the loop's entry.
struct TeamPointers {
  struct Stack {
    uint64_t stack_pointer = 0;
    uint64_t thread_pointer = 0;  // above it, where a thread library made the stack
  };
  std::vector<Stack> stacks;        // everything in use of them is kept
  std::vector<uint64_t> registers;  // as much around them as the loop's longest range is kept
};

struct TrimmedFork {
  std::vector<PcRange> ranges;  // to leave out; disjoint, at most kMaxTrims
  uint64_t small_bytes = 0;     // resident in 4 KiB pages, at least
  uint64_t huge_bytes = 0;
};

// One shadow that is to be narrowed.
struct TrimWork {
  Footprint footprint;
  std::vector<MemoryArea> areas;  // before the arming
  MemoryFacts facts;
  TrimmedFork chosen;
  absl::Status status;  // why not, when the leader was told not to
  bool answered = false;
};

// Marks of others must survive: MADV_DOFORK takes away whatever mark is there.
absl::Status JudgeTrim(std::span<const MemoryArea> areas, std::span<const OpenFile> files,
                       uint64_t pinned_bytes);
TrimmedFork ChooseTrim(std::span<const MemoryArea> areas, const Footprint& footprint,
                       const TeamPointers& team);
// What will be left of a narrowing that knew no registers, where they are all that is kept (Footprint::around).
TrimmedFork WithoutPointers(TrimmedFork trimmed_fork, const Footprint& footprint, int32_t team);
// Those of `areas` that are still mapped as they were.
std::vector<MemoryArea> StillThere(std::vector<MemoryArea> areas, std::span<const MapEntry> maps);
// What the fork has to copy then.
MemoryFacts Trimmed(MemoryFacts facts, const TrimmedFork& trimmed_fork);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_FORKING_TRIMMED_FORK_H_
