#include "agent/procfs/clone_waiter.h"

#include <sys/syscall.h>
#include <sys/wait.h>

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/procfs/read_file.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr size_t kLineBytes = 4096;
constexpr size_t kFields = 9;

}  // namespace

bool WaitsForAnyClone(absl::string_view line) {
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::StripAsciiWhitespace(line), ' ');
  int64_t call = 0;
  if (fields.size() != kFields || !absl::SimpleAtoi(fields[0], &call)) return false;
  const auto argument = [&](size_t index) {
    uint64_t value = 0;
    return absl::SimpleHexAtoi(fields[1 + index], &value) ? static_cast<uint32_t>(value) : 0;
  };
  // Arguments are int: the upper half of the register says nothing.
  constexpr uint32_t kClones = static_cast<uint32_t>(__WALL) | static_cast<uint32_t>(__WCLONE);
  if (call == SYS_wait4) {
    const bool one = static_cast<int32_t>(argument(0)) > 0;
    return !one && (argument(2) & kClones) != 0;
  }
  if (call == SYS_waitid) {
    const bool any = argument(0) == P_ALL || argument(0) == P_PGID;
    return any && (argument(3) & kClones) != 0;
  }
  return false;
}

absl::StatusOr<int32_t> FindCloneWaiter(const ProcFs& procfs, int32_t pid) {
  ASSIGN_OR_RETURN(const std::vector<int32_t> tids, procfs.Threads(pid));
  for (const int32_t tid : tids) {
    const auto line =
        ReadWholeFile(absl::StrCat(procfs.root(), "/", pid, "/task/", tid, "/syscall"), kLineBytes);
    if (absl::IsNotFound(line.status())) continue;  // it has ended
    RETURN_IF_ERROR(line.status());
    if (WaitsForAnyClone(*line)) return tid;
  }
  return 0;
}

}  // namespace perfd::agent
