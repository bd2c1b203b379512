// agent/shadow/forking/memory_sharing.h - whether a process has its memory for itself.
//
// Shape    a process that shares the memory without being a thread (vfork and its like) could fork while memory is marked.
// Errors   kFailedPrecondition: one shares it, or the kernel does not say; not knowing is never taken for a no.
// Source   kcmp(2), KCMP_VM; proc(5), /proc/PID/task/TID/children.
#ifndef AGENT_SHADOW_FORKING_MEMORY_SHARING_H_
#define AGENT_SHADOW_FORKING_MEMORY_SHARING_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace perfd::agent {

absl::Status CheckAlone(int32_t pid, std::span<const int32_t> others);
// Of all its threads. Fast, for the moment when the process stands still.
absl::StatusOr<std::vector<int32_t>> ChildrenOf(int32_t pid, std::span<const int32_t> threads);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_FORKING_MEMORY_SHARING_H_
