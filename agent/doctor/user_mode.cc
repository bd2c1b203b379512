#include "agent/doctor/user_mode.h"

#include "absl/strings/str_cat.h"

namespace perfd::agent {
namespace {

constexpr int64_t kLowestParanoid = -1;
constexpr int64_t kWithKernelUpTo = 1;  // 2: without CAP_PERFMON the kernel is excluded
constexpr int64_t kUserCodeUpTo = 2;    // 3 (Debian), 4 (Ubuntu): nothing without CAP_PERFMON
constexpr int64_t kHighestParanoid = 4;
constexpr int64_t kHighestScope = 3;

Sampling SamplingAt(int64_t paranoid, std::optional<bool> event_opens) {
  if (!event_opens.value_or(paranoid <= kUserCodeUpTo)) return Sampling::kNone;
  return paranoid <= kWithKernelUpTo ? Sampling::kWithKernel : Sampling::kUserCode;
}

const char* Text(Sampling sampling) {
  switch (sampling) {
    case Sampling::kNone:
      return "no sampling: a profile fails and says so";
    case Sampling::kUserCode:
      return "sampling of user code; time in the kernel is not seen";
    case Sampling::kWithKernel:
      return "sampling, the kernel's part included";
  }
  return "";
}

const char* LoopText(bool alters) {
  return alters ? "loops are altered in shadows: saturations and gains"
                : "no loop is altered: shares, no saturations";
}

}  // namespace

UserModeReach ReachOfUserMode(int64_t paranoid, std::optional<int64_t> ptrace_scope,
                              std::optional<bool> event_opens) {
  UserModeReach reach;
  reach.sampling = SamplingAt(paranoid, event_opens);
  reach.rings_unlimited = paranoid <= kLowestParanoid;
  // From 1 on only a tracer's own descendants, and ours is a process of its own beside the ranks. Without samples nobody
  // knows which loops are hot.
  reach.alters_loops = ptrace_scope.value_or(0) == 0 && reach.sampling != Sampling::kNone;
  return reach;
}

std::string Describe(const UserModeReach& reach) {
  if (reach.sampling == Sampling::kNone) return Text(reach.sampling);
  return absl::StrCat(Text(reach.sampling), "; ", LoopText(reach.alters_loops));
}

std::vector<std::string> UserModeRows() {
  std::vector<std::string> rows;
  for (int64_t level = kLowestParanoid; level <= kHighestParanoid; ++level) {
    const UserModeReach reach = ReachOfUserMode(level, std::nullopt, std::nullopt);
    rows.push_back(
        absl::StrCat("| ", level, " | ", Text(reach.sampling), " |",
                     reach.rings_unlimited ? " no limit |" : " `perf_event_mlock_kb` |"));
  }
  for (int64_t scope = 0; scope <= kHighestScope; ++scope) {
    const UserModeReach reach = ReachOfUserMode(0, scope, true);
    rows.push_back(absl::StrCat("| ", scope, " | ", LoopText(reach.alters_loops), " |"));
  }
  return rows;
}

}  // namespace perfd::agent
