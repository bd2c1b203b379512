#include "agent/shadow/forking/task_room.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/procfs/cgroup/cgroup_folders.h"
#include "agent/procfs/read_file.h"

namespace perfd::agent {
namespace {

constexpr size_t kSmallFile = 16 << 10;

void Consider(uint64_t limit, uint64_t used, absl::string_view what, TaskRoom* room) {
  const uint64_t left = limit - std::min(limit, used);
  if (room->left && *room->left <= left) return;
  room->left = left;
  room->limit = absl::StrCat(what, " allows ", limit, ", ", used, " are there");
}

// Everybody's: "0.10 0.20 0.30 2/80 13652".
std::optional<uint64_t> TasksOfNode(const ProcFs& procfs) {
  const auto text = ReadWholeFile(procfs.root() + "/loadavg", kSmallFile);
  if (!text.ok()) return std::nullopt;
  const std::vector<absl::string_view> words = absl::StrSplit(*text, ' ');
  uint64_t tasks = 0;
  if (words.size() < 4 || !absl::SimpleAtoi(words[3].substr(words[3].find('/') + 1), &tasks))
    return std::nullopt;
  return tasks;
}

uint64_t TasksOfUser(const ProcFs& procfs, uint32_t uid) {
  uint64_t tasks = 0;
  const auto pids = procfs.Pids();
  if (!pids.ok()) return 0;
  for (const int32_t pid : *pids) {
    const auto status = procfs.Status(pid);
    if (status.ok() && status->real_uid == uid)
      tasks += static_cast<uint64_t>(std::max(0, status->thread_count));
  }
  return tasks;
}

// The kernel asks nobody with these rights, nor root itself.
bool IsExempt(const ProcessStatus& status) {
  constexpr uint64_t kSysAdmin = uint64_t{1} << 21, kSysResource = uint64_t{1} << 24;
  return status.real_uid == 0 || (status.capabilities.effective & (kSysAdmin | kSysResource)) != 0;
}

}  // namespace

std::optional<uint64_t> ParseTaskLimit(absl::string_view limits) {
  for (absl::string_view line : absl::StrSplit(limits, '\n')) {
    if (!absl::ConsumePrefix(&line, "Max processes ")) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t soft = 0;
    if (words.empty() || !absl::SimpleAtoi(words[0], &soft)) return std::nullopt;
    return soft;
  }
  return std::nullopt;
}

TaskRoom ReadTaskRoom(const ProcFs& procfs, int32_t pid, const ProcessStatus& status,
                      uint64_t enough) {
  TaskRoom room;
  for (const GroupFolder& folder : FoldersOf(procfs, pid, "pids")) {
    const auto limit = ReadNumber(folder.path + "/pids.max");
    const auto used = ReadNumber(folder.path + "/pids.current");
    if (limit && used) Consider(*limit, *used, "pids.max of its control group", &room);
  }
  if (IsExempt(status)) return room;
  const auto limits = ReadWholeFile(absl::StrCat(procfs.root(), "/", pid, "/limits"), kSmallFile);
  const auto limit = limits.ok() ? ParseTaskLimit(*limits) : std::nullopt;
  if (!limit) return room;
  // A user has no more than the node has.
  const auto all = TasksOfNode(procfs);
  if (all && *limit >= *all && *limit - *all >= enough) return room;
  Consider(*limit, TasksOfUser(procfs, status.real_uid), "RLIMIT_NPROC of its user", &room);
  return room;
}

absl::Status JudgeTasks(const TaskRoom& room, uint64_t shadow_tasks) {
  if (!room.left || *room.left >= shadow_tasks + kSpareTasks) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("shadows are up to ", shadow_tasks, " threads and processes, and ", kSpareTasks,
                   " must be left to the job itself: ", room.limit));
}

}  // namespace perfd::agent
