#include "agent/shadow/forking/memory_sharing.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/procfs/procfs.h"
#include "agent/procfs/read_file.h"
#include "agent/shadow/forking/process_files.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr size_t kMostText = 1 << 20;

// 0: the same memory; more: another one; less: -errno.
int CompareMemory(int32_t pid, int32_t other) {
  constexpr int kVm = 1;  // KCMP_VM
  const long result = syscall(SYS_kcmp, pid, other, kVm, 0, 0);
  return result < 0 ? -errno : static_cast<int>(result);
}

using Figures = std::vector<uint64_t>;

// Of the memory itself: whoever shares it has the same at any time. Everybody may read them.
absl::StatusOr<Figures> FiguresOf(int32_t pid) {
  ASSIGN_OR_RETURN(const std::string text,
                   ReadWholeFile(absl::StrCat("/proc/", pid, "/status"), kMostText));
  const auto lines = ParseKbLines(text);
  Figures figures;
  for (const char* key : {"VmPeak", "VmSize", "VmData", "VmStk", "VmExe", "VmLib"}) {
    const auto at = lines.find(key);
    figures.push_back(at == lines.end() ? 0 : at->second);
  }
  return figures;
}

// Twice, between two looks at the process that are the same: it may be changing its memory just now.
bool LooksDifferent(int32_t pid, int32_t other) {
  constexpr int kTries = 8, kEnough = 2;
  int different = 0;
  for (int i = 0; i < kTries && different < kEnough; ++i) {
    const auto before = FiguresOf(pid), theirs = FiguresOf(other), after = FiguresOf(pid);
    if (!before.ok() || !theirs.ok() || !after.ok()) return absl::IsNotFound(theirs.status());
    if (*before != *after) continue;
    if (*theirs == *before) return false;
    ++different;
  }
  return different == kEnough;
}

// Of those that kcmp may not tell about: what belongs to somebody else, or has more rights than this agent.
bool IsSurelyElsewhere(int32_t pid, int32_t other) {
  const auto own = ProcFs().Status(pid), status = ProcFs().Status(other);
  if (absl::IsNotFound(status.status())) return true;  // gone meanwhile
  if (own.ok() && status.ok() && own->real_uid != status->real_uid &&
      own->effective_uid != status->effective_uid)
    return true;
  return LooksDifferent(pid, other);
}

}  // namespace

absl::Status CheckAlone(int32_t pid, std::span<const int32_t> others) {
  if (const int self = CompareMemory(pid, pid); self != 0)
    return absl::FailedPreconditionError(
        absl::StrCat("the kernel does not say who shares its memory (kcmp: ",
                     self < 0 ? strerror(-self) : "unlike itself", ")"));
  for (int32_t other : others) {
    if (other == pid) continue;
    const int result = CompareMemory(pid, other);
    if (result > 0 || result == -ESRCH || (result == -EPERM && IsSurelyElsewhere(pid, other)))
      continue;
    if (result == 0)
      return absl::FailedPreconditionError(
          absl::StrCat("process ", other, " shares its memory without being a thread of it"));
    return absl::FailedPreconditionError(absl::StrCat("the kernel does not say whether process ",
                                                      other,
                                                      " shares its memory: ", strerror(-result)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> ChildrenOf(int32_t pid, std::span<const int32_t> threads) {
  std::vector<int32_t> children;
  for (int32_t thread : threads) {
    const auto text =
        ReadWholeFile(absl::StrCat("/proc/", pid, "/task/", thread, "/children"), kMostText);
    if (!text.ok())
      return absl::FailedPreconditionError(
          absl::StrCat("its children are not known: ", text.status().message()));
    for (absl::string_view word : absl::StrSplit(*text, ' ', absl::SkipWhitespace())) {
      int32_t child = 0;
      if (!absl::SimpleAtoi(word, &child))
        return absl::FailedPreconditionError("its children are not known: no number");
      children.push_back(child);
    }
  }
  return children;
}

}  // namespace perfd::agent
