#include "agent/doctor/injection_check.h"

#include <linux/capability.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/procfs/read_file.h"

namespace perfd::agent {
namespace {

constexpr size_t kSmallFile = 65536;
constexpr int kLeastMajor = 5;  // PTRACE_GET_RSEQ_CONFIGURATION: Linux 5.13
constexpr int kLeastMinor = 13;
constexpr int64_t kNoAttach = 3;  // of kernel.yama.ptrace_scope

InjectionObstacle TracerObstacle(const std::string& tracer) {
  if (tracer.empty() || ::access(tracer.c_str(), X_OK) == 0) return {};
  return {absl::StrCat("the tracer ", tracer, " cannot be started: ", std::strerror(errno)),
          absl::StrCat("install -m 0755 perf-agent-tracer ", tracer)};
}

// Whether an agent with this right may attach to the ranks it serves.
InjectionObstacle PtraceObstacle(const ProcFs& procfs, bool has_right, bool user_mode) {
  const absl::StatusOr<int64_t> yama = procfs.SysctlInt("kernel/yama/ptrace_scope");
  const int64_t scope = yama.value_or(0);  // no Yama: the classic rule
  if (scope >= kNoAttach)
    return {"kernel.yama.ptrace_scope=3 forbids every ptrace until the next boot",
            "sed -i 's/^kernel.yama.ptrace_scope.*/kernel.yama.ptrace_scope = 0/' "
            "/etc/sysctl.d/*.conf && reboot"};
  if (has_right) return {};
  if (!user_mode)
    return {"the agent lacks CAP_SYS_PTRACE: it may not stop a rank",
            "systemctl restart perf-agent  # as root"};
  if (scope == 0) return {};
  return {absl::StrCat("kernel.yama.ptrace_scope=", scope,
                       " lets an agent in user mode stop no process that it did not start"),
          "sysctl -w kernel.yama.ptrace_scope=0"};
}

InjectionObstacle KernelObstacle(const ProcFs& procfs) {
  const std::string release =
      ReadWholeFile(procfs.root() + "/sys/kernel/osrelease", kSmallFile).value_or("");
  const std::vector<std::string> parts = absl::StrSplit(release, absl::ByAnyChar(".-\n"));
  int major = 0;
  int minor = 0;
  const bool known =
      parts.size() >= 2 && absl::SimpleAtoi(parts[0], &major) && absl::SimpleAtoi(parts[1], &minor);
  if (known && std::pair(major, minor) >= std::pair(kLeastMajor, kLeastMinor)) return {};
  return {absl::StrCat("the kernel (", parts[0], known ? absl::StrCat(".", minor) : "",
                       ") is older than 5.13 and cannot say where restartable sequences are"),
          "apt-get install linux-image-amd64  # then reboot"};
}

}  // namespace

InjectionObstacle FindObstacle(const ProcFs& procfs, const NodeCheckOptions& options) {
  if (!options.inject)
    return {"the agent's configuration does not allow it (injection.allowed, --no-injection)",
            "set injection.allowed: true in /etc/perfd/agent.yaml && systemctl reload perf-agent"};
  if (!options.disable_file.empty() && ::access(options.disable_file.c_str(), F_OK) == 0)
    return {absl::StrCat(options.disable_file, " exists"),
            absl::StrCat("rm ", options.disable_file)};
  InjectionObstacle found = TracerObstacle(options.tracer_binary);
  if (!found.reason.empty()) return found;
  const int32_t pid = options.pid != 0 ? options.pid : static_cast<int32_t>(::getpid());
  const absl::StatusOr<ProcessStatus> status = procfs.Status(pid);
  const uint64_t rights = status.ok() ? status->capabilities.effective : 0;
  found = PtraceObstacle(procfs, (rights >> CAP_SYS_PTRACE & 1) != 0, options.user_mode);
  if (!found.reason.empty()) return found;
  found = KernelObstacle(procfs);
  if (!found.reason.empty()) return found;
  if (options.steady_clock) return {};
  return {"this machine's time stamp counter is not invariant: cycles cannot be compared",
          "measure on another machine, or let the hypervisor show an invariant TSC"};
}

void CheckInjection(const CheckScope& scope) {
  const std::string& tracer = scope.options.tracer_binary;
  if (!tracer.empty()) {
    scope.Add(CheckProgram("perf-agent-tracer", tracer));
    scope.checks->back().optional = true;  // sampling needs none
  }
  InjectionObstacle found = FindObstacle(scope.procfs, scope.options);
  if (found.reason.empty() && !tracer.empty() && !scope.checks->back().ok)
    found = {absl::StrCat("the tracer does not run: ", scope.checks->back().found),
             scope.checks->back().fix};
  scope.Add({.name = "altering loops",
             .ok = found.reason.empty(),
             .optional = true,
             .found = found.reason.empty() ? "possible: variants are measured in shadows of ranks"
                                           : absl::StrCat("not possible: ", found.reason),
             .fix = std::move(found.fix)});
}

}  // namespace perfd::agent
