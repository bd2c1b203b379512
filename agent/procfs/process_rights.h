// agent/procfs/process_rights.h - with whose rights a process acts, and who may look into it. Pure.
//
// Shape    RightsOf(status), then compare, or CheckPlain: real, effective and saved ids all the same, and no
//          capability.
// Errors   CheckPlain: kPermissionDenied, e.g. "runs with the rights of root (setuid)".
// Rules    as ptrace_may_access: who may look into a process must match all its ids, or a setuid program would show its
//          caller what only its owner may know. Groups: all the process's own, whatever group that is.
// Source   kernel/ptrace.c __ptrace_may_access; credentials(7).
#ifndef AGENT_PROCFS_PROCESS_RIGHTS_H_
#define AGENT_PROCFS_PROCESS_RIGHTS_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "agent/procfs/procfs.h"

namespace perfd::agent {

struct ProcessRights {
  std::array<uint32_t, 3> uids{};  // real, effective, saved
  std::array<uint32_t, 3> gids{};
  uint64_t capabilities = 0;  // permitted: effective and ambient ones are among them

  bool operator==(const ProcessRights&) const = default;
};

ProcessRights RightsOf(const ProcessStatus& status);
ProcessRights WithoutCapabilities(ProcessRights rights);

// `who` begins the message, e.g. "process 7 (passwd)".
absl::Status CheckPlain(const ProcessRights& rights, const std::string& who);

// "alice (uid 1000)"; the number alone when nobody knows the name.
std::string UserText(uint32_t uid);

}  // namespace perfd::agent

#endif  // AGENT_PROCFS_PROCESS_RIGHTS_H_
