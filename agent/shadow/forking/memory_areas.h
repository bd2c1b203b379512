// agent/shadow/forking/memory_areas.h - the mappings of a rank with what a fork would copy of each.
//
// Shape    the parser is pure (foreign bytes); ReadMemoryAreas reads once. In the order of the addresses.
// Units    bytes.
// Errors   kNotFound: gone; kResourceExhausted: more text than 16 MB, some 20,000 mappings; kInvalidArgument: does not parse.
// Threads  the kernel walks every page of the process for it: some ms per GB, none of them of the rank's own time.
// Source   proc(5), smaps; fs/proc/task_mmu.c show_smap_vma_flags.
#ifndef AGENT_SHADOW_FORKING_MEMORY_AREAS_H_
#define AGENT_SHADOW_FORKING_MEMORY_AREAS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/procfs/procfs.h"

namespace perfd::agent {

struct MemoryArea {
  MapEntry map;
  uint64_t anonymous = 0;          // resident
  uint64_t huge = 0;               // of it: AnonHugePages
  std::vector<std::string> flags;  // VmFlags: "rd", "wr", "dc"
  bool HasFlag(absl::string_view flag) const;
};

absl::StatusOr<std::vector<MemoryArea>> ParseMemoryAreas(absl::string_view smaps);
absl::StatusOr<std::vector<MemoryArea>> ReadMemoryAreas(int32_t pid);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_FORKING_MEMORY_AREAS_H_
