// agent/shadow/forking/task_room.h - how many more threads and processes a rank may begin before one of its own is refused.
//
// Shape    a shadow is as many tasks as its team has threads. While it lives, limits of the control group (pids.max) and of the user
//          (RLIMIT_NPROC) count them: where there is little room, pthread_create of the job itself would fail. ReadTaskRoom
//          looks, JudgeTasks decides (pure).
// Units    tasks: threads of all processes.
// Errors   kFailedPrecondition: which limit, and how much room it leaves. What cannot be read does not limit.
// Source   Documentation/admin-guide/cgroup-v2.rst (pids.max), getrlimit(2) RLIMIT_NPROC, kernel/fork.c copy_process.
#ifndef AGENT_SHADOW_FORKING_TASK_ROOM_H_
#define AGENT_SHADOW_FORKING_TASK_ROOM_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agent/procfs/procfs.h"

namespace perfd::agent {

struct TaskRoom {
  std::optional<uint64_t> left;  // none: nothing limits it
  std::string limit;             // that leaves so few
};

// As many must be left to the job itself beside all shadows.
inline constexpr uint64_t kSpareTasks = 64;

// `enough`: nobody is counted where so many are left for sure.
TaskRoom ReadTaskRoom(const ProcFs& procfs, int32_t pid, const ProcessStatus& status,
                      uint64_t enough);
absl::Status JudgeTasks(const TaskRoom& room, uint64_t shadow_tasks);

// Of /proc/PID/limits; none: unlimited, or not said.
std::optional<uint64_t> ParseTaskLimit(absl::string_view limits);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_FORKING_TASK_ROOM_H_
