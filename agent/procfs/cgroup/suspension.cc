#include "agent/procfs/cgroup/suspension.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/procfs/cgroup/cgroup_folders.h"
#include "agent/procfs/read_file.h"

namespace perfd::agent {
namespace {

constexpr size_t kSmallFile = 4096;

bool IsFrozen(const GroupFolder& group) {
  if (group.unified) return ReadNumber(group.path + "/cgroup.freeze") == 1;
  const auto state = ReadWholeFile(group.path + "/freezer.state", kSmallFile);
  return state.ok() && !state->empty() && absl::StripSuffix(*state, "\n") != "THAWED";
}

}  // namespace

std::string SuspendedBy(const ProcFs& procfs, int32_t pid) {
  const auto stamp = procfs.Stamp(pid);
  if (!stamp.ok()) return "";
  if (stamp->state == 'T') return "SIGSTOP";
  for (const GroupFolder& group : FoldersOf(procfs, pid, "freezer")) {
    if (IsFrozen(group)) return absl::StrCat("the freezer of its control group ", group.path);
  }
  return "";
}

absl::Status CheckNotSuspended(const ProcFs& procfs, int32_t pid) {
  const std::string by = SuspendedBy(procfs, pid);
  if (by.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("process ", pid, " is suspended (", by, ")"));
}

}  // namespace perfd::agent
