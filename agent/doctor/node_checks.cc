#include "agent/doctor/node_checks.h"

#include <linux/capability.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "agent/doctor/check_scope.h"
#include "agent/doctor/injection_check.h"
#include "agent/doctor/user_mode.h"

namespace perfd::agent {
namespace {

constexpr int64_t kUnknownParanoid = 2;  // the kernel's default

// The sum of what the other rows say, for someone who may change none of it.
void CheckUserMode(const CheckScope& scope) {
  if (!scope.options.user_mode) return;
  const auto event = std::find_if(
      scope.checks->begin(), scope.checks->end(),
      [](const NodeCheck& check) { return check.name == "perf_event_open cpu-clock"; });
  const int64_t paranoid =
      scope.procfs.SysctlInt("kernel/perf_event_paranoid").value_or(kUnknownParanoid);
  const absl::StatusOr<int64_t> yama = scope.procfs.SysctlInt("kernel/yama/ptrace_scope");
  std::optional<int64_t> ptrace_scope;
  if (yama.ok() && !scope.Has(CAP_SYS_PTRACE)) ptrace_scope = *yama;
  const UserModeReach reach =
      ReachOfUserMode(scope.MayProfile() ? 0 : paranoid, ptrace_scope,
                      event != scope.checks->end() ? std::optional(event->ok) : std::nullopt);
  scope.Add(
      {.name = "user mode",
       .ok = reach.sampling != Sampling::kNone,
       .optional = true,
       .found = Describe(reach),
       .fix =
           "sysctl -w kernel.perf_event_paranoid=1  # as an administrator; see docs/user_mode.md"});
}

}  // namespace

bool CheckScope::MayProfile() const {
  return Has(CAP_PERFMON) || Has(CAP_SYS_ADMIN);
}

std::string CheckScope::SetcapLine() const {
  return absl::StrCat(
      "setcap "
      "cap_perfmon,cap_sys_ptrace,cap_ipc_lock,cap_dac_read_search,cap_checkpoint_restore+ep ",
      agent_binary);
}

std::vector<NodeCheck> RunNodeChecks(const ProcFs& procfs, const NodeCheckOptions& options) {
  const int32_t pid = options.pid != 0 ? options.pid : static_cast<int32_t>(::getpid());
  const absl::StatusOr<ProcessStatus> status = procfs.Status(pid);
  std::string binary = options.agent_binary;
  if (binary.empty()) binary = procfs.Executable(pid).value_or("perf-agent");
  std::vector<NodeCheck> checks;
  const CheckScope scope{procfs, options, status.ok() ? status->capabilities.effective : 0, binary,
                         &checks};
  CheckPerf(scope);
  CheckRights(scope);
  CheckKernel(scope);
  CheckPrograms(scope);
  CheckInjection(scope);
  CheckUserMode(scope);
  return checks;
}

}  // namespace perfd::agent
