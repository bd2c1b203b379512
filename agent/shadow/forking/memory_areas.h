// agent/shadow/forking/memory_areas.h - the mappings of a rank with what a fork would copy of each.
//
// Shape    the parser is pure (foreign bytes); ReadMemoryAreas reads once. In the order of the addresses. DiffersInFork is the table
//          of VmFlags that make a fork's memory another than the rank's.
// Units    bytes.
// Errors   kNotFound: gone; kResourceExhausted: more text than 16 MB, some 20,000 mappings; kInvalidArgument: does not parse.
// Threads  the kernel walks every page of the process for it: some ms per GB, none of them of the rank's own time.
// Source   proc(5), smaps; fs/proc/task_mmu.c show_smap_vma_flags.
#ifndef AGENT_SHADOW_FORKING_MEMORY_AREAS_H_
#define AGENT_SHADOW_FORKING_MEMORY_AREAS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/attach/hold_request.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/forking/process_files.h"

namespace perfd::agent {

struct MemoryArea {
  MapEntry map;
  uint64_t resident = 0;
  uint64_t private_dirty = 0;
  uint64_t anonymous = 0;  // resident
  uint64_t huge = 0;       // of it: AnonHugePages
  uint64_t private_hugetlb = 0;
  std::vector<std::string> flags;  // VmFlags: "rd", "wr", "dc"
  bool HasFlag(absl::string_view flag) const;
};

absl::StatusOr<std::vector<MemoryArea>> ParseMemoryAreas(absl::string_view smaps);
absl::StatusOr<std::vector<MemoryArea>> ReadMemoryAreas(int32_t pid);
// The sums of what is resident; the rest of the facts is left as it is.
MemoryFacts SumResident(std::span<const MemoryArea> areas);

// Memory that a fork has, but with other contents than the rank's, or without the right to touch it.
enum class WhyProtected : uint32_t { kShared, kDevice, kEmptyInForks, kPagedByOthers };
struct ForkedDifferently {
  PcRange range;
  WhyProtected why = WhyProtected::kDevice;
};
std::vector<ForkedDifferently> DiffersInFork(std::span<const MemoryArea> areas);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_FORKING_MEMORY_AREAS_H_
