// agent/shadow/forking/memory_walk.h - what memory a rank has, walked through no more often than it changes.
//
// Shape    Facts(): from a walk over all pages (memory_areas.h), or from the last one while what the kernel counts anyhow
//          (ReadMemoryCounts) says that little has changed, corrected by what has. Whether a page is huge only a walk tells.
// Units    bytes; ns.
// Errors   of the readers.
// Threads  thread-compatible.
// Source   proc(5), status: "these values are inaccurate" by some pages per CPU, which is why little is no change.
#ifndef AGENT_SHADOW_FORKING_MEMORY_WALK_H_
#define AGENT_SHADOW_FORKING_MEMORY_WALK_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/shadow/forking/memory_areas.h"
#include "agent/shadow/forking/process_files.h"

namespace perfd::agent {

// Walks over every page of the process: some ms per 100 MB of 4 KiB pages.
absl::StatusOr<MemoryFacts> ReadMemoryFacts(int32_t pid);

// Whether a walk that found `then` is still good for `now`. Pure.
bool SaysTheSame(const MemoryCounts& then, const MemoryCounts& now);
// The facts of a walk at `then`, as they are to be taken for `now`. Pure.
MemoryFacts Corrected(MemoryFacts facts, const MemoryCounts& then, const MemoryCounts& now);

class MemoryWalk {
 public:
  explicit MemoryWalk(int32_t pid) : pid_(pid) {}

  absl::StatusOr<MemoryFacts> Facts();
  // Of the last walk.
  const std::vector<ForkedDifferently>& differs_in_fork() const { return differs_in_fork_; }
  // So far. The process's own calls for memory may have waited as long as they took: CPU time of the agent, which is charged
  // anyway.
  uint64_t walks() const { return walks_; }

 private:
  struct Walk {
    MemoryFacts facts;
    MemoryCounts counts;
    int64_t until_ns = 0;
  };

  const int32_t pid_;
  std::optional<Walk> last_;
  std::vector<ForkedDifferently> differs_in_fork_;
  uint64_t walks_ = 0;
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_FORKING_MEMORY_WALK_H_
