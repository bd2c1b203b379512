// agent/shadow/forking/cgroup_memory.h - how much memory the control groups of a process leave it, version 1 and 2.
//
// Shape    of all groups from the process's own up to the top the one with the least room counts (cgroup_folders.h).
// Units    bytes.
// Errors   none: what cannot be read does not limit.
// Source   Documentation/admin-guide/cgroup-v2.rst (memory.max, memory.oom.group), cgroup-v1/memory.rst (memory.limit_in_bytes,
//          memory.oom_control).
#ifndef AGENT_SHADOW_FORKING_CGROUP_MEMORY_H_
#define AGENT_SHADOW_FORKING_CGROUP_MEMORY_H_

#include <cstdint>
#include <optional>

#include "agent/procfs/procfs.h"

namespace perfd::agent {

struct CgroupMemory {
  std::optional<uint64_t> limit;  // of the group with the least room
  uint64_t current = 0;           // of that one
  bool oom_group = false;         // version 2: all of a group is killed at once
  bool oom_waits = false;  // version 1: who has no memory sleeps until somebody else has less
};

CgroupMemory ReadCgroupMemory(int32_t pid);
// Of a fake tree, too.
CgroupMemory ReadCgroupMemory(const ProcFs& procfs, int32_t pid);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_FORKING_CGROUP_MEMORY_H_
