// agent/shadow/forking/preconditions.h - may this rank be forked at all? What would make a shadow dangerous is refused by name.
//
// Shape    ReadHazards looks; JudgeHazards decides (pure).
// Errors   kFailedPrecondition: the reason, and where there is one, the remedy; kNotFound: gone.
// Source   hazards: "Forking"; design section 6, "Refuse beforehand".
#ifndef AGENT_SHADOW_FORKING_PRECONDITIONS_H_
#define AGENT_SHADOW_FORKING_PRECONDITIONS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/forking/cgroup_memory.h"
#include "agent/shadow/forking/process_files.h"
#include "agent/shadow/forking/task_room.h"

namespace perfd::agent {

struct RankHazards {
  int32_t pid = 0;
  ProcessStatus status;
  MemoryFacts memory;
  NodeMemory node;
  CgroupMemory cgroup;
  TaskRoom tasks;
  uint64_t shadow_tasks = 0;  // of all ranks whose shadows may run at the same time
  std::vector<OpenFile> files;
  std::vector<MapEntry> maps;
  uint64_t free_hugetlb = 0;
  int32_t clone_waiter = 0;            // a thread that would reap a shadow; 0: none
  std::pair<int32_t, int32_t> kernel;  // major and minor version
};

// What predictions are made from.
struct MemoryCache {
  MemoryFacts memory;
  NodeMemory node;
  CgroupMemory cgroup;
};

// A stop reads the mappings once while the threads stand still, a fork copies them: both take as long as reading them now, or
// less. kFailedPrecondition when that is too much of the longest stop.
absl::Status CheckMappings(const ProcFs& procfs, int32_t pid, int64_t longest_stop_ns);
struct MappingsRead {
  size_t count = 0;
  bool all = true;     // false: there are more
  int64_t cpu_ns = 0;  // reading them took
};
// Pure.
absl::Status JudgeMappings(int32_t pid, const MappingsRead& read, int64_t longest_stop_ns);

// memory: of this process; ranks: so many, much like this one, fork at the same time.
absl::StatusOr<RankHazards> ReadHazards(int32_t pid, const MemoryFacts& memory, int32_t ranks = 1);
absl::Status JudgeHazards(const RankHazards& hazards);

// What a shadow of this rank may need at most besides what its loop writes: page tables, stacks, buffers.
uint64_t ShadowHeadroom(const MemoryFacts& memory);
// Headroom only: cheap enough for every prediction.
// extra: bytes that the runs are known to write or to put aside; ranks: so many, much like this one, fork at the same time.
absl::Status JudgeMemory(const MemoryFacts& memory, const NodeMemory& node,
                         const CgroupMemory& cgroup, uint64_t extra = 0, int32_t ranks = 1);

// A mapping of a device: its pages are not memory.
bool IsDevice(const MapEntry& map);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_FORKING_PRECONDITIONS_H_
