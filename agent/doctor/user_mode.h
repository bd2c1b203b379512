// agent/doctor/user_mode.h - what an agent without privileges can do for its own user's processes at each setting of the
// kernel.
//
// Shape    levels in, abilities out (pure). What the kernel really allows is shown by opening an event: levels from 3 on
//          mean something only to kernels of distributions.
// Source   kernel.rst "perf_event_paranoid" (Documentation/admin-guide/sysctl); kernel/events/core.c
//          perf_allow_kernel, perf_allow_cpu; Debian's patch "add perf_event_paranoid level 3" (Ubuntu: 4);
//          Documentation/admin-guide/LSM/Yama.rst (PTRACE_ATTACH only: reading /proc and sampling are not touched).
#ifndef AGENT_DOCTOR_USER_MODE_H_
#define AGENT_DOCTOR_USER_MODE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace perfd::agent {

enum class Sampling {
  kNone,        // perf_event_open is refused
  kUserCode,    // one's own code, without the time in the kernel
  kWithKernel,  // and the kernel's part of it
};

struct UserModeReach {
  Sampling sampling = Sampling::kNone;
  bool rings_unlimited = false;  // kernel.perf_event_mlock_kb does not count
  bool alters_loops = false;     // saturations: variants in shadows
};

// `event_opens`: what happened when one was tried; nothing: decided by the level, as a kernel that knows level 3 does.
// `ptrace_scope`: nothing: no Yama.
UserModeReach ReachOfUserMode(int64_t paranoid, std::optional<int64_t> ptrace_scope,
                              std::optional<bool> event_opens);

// One sentence for `perf-agent doctor`.
std::string Describe(const UserModeReach& reach);

// The rows of the two tables in docs/user_mode.md, as Markdown.
std::vector<std::string> UserModeRows();

}  // namespace perfd::agent

#endif  // AGENT_DOCTOR_USER_MODE_H_
