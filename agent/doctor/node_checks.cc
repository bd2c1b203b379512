#include "agent/doctor/node_checks.h"

#include <linux/capability.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "agent/doctor/check_scope.h"
#include "agent/doctor/injection_check.h"

namespace perfd {

bool CheckScope::MayProfile() const {
  return Has(CAP_PERFMON) || Has(CAP_SYS_ADMIN);
}

std::string CheckScope::SetcapLine() const {
  return absl::StrCat("setcap cap_perfmon,cap_sys_ptrace,cap_ipc_lock,cap_dac_read_search+ep ",
                      agent_binary);
}

std::vector<NodeCheck> RunNodeChecks(const ProcFs& procfs, const NodeCheckOptions& options) {
  const int32_t pid = options.pid != 0 ? options.pid : static_cast<int32_t>(::getpid());
  const absl::StatusOr<ProcessStatus> status = procfs.Status(pid);
  std::string binary = options.agent_binary;
  if (binary.empty()) binary = procfs.Executable(pid).value_or("perf-agent");
  std::vector<NodeCheck> checks;
  const CheckScope scope{procfs, options, status.ok() ? status->effective_capabilities : 0, binary,
                         &checks};
  CheckPerf(scope);
  CheckRights(scope);
  CheckKernel(scope);
  CheckPrograms(scope);
  CheckInjection(scope);
  return checks;
}

}  // namespace perfd
