// agent/procfs/clone_waiter.h - a thread that sleeps in wait4 or waitid and would reap any clone of its process, a shadow too.
//
// Shape    WaitsForAnyClone is pure; FindCloneWaiter looks at every thread. Who asks with WNOHANG does not sleep: it is not seen.
// Errors   FindCloneWaiter: kNotFound (gone), kPermissionDenied.
// Source   proc(5) /proc/PID/syscall; wait(2) "__WCLONE", "__WALL"; kernel/exit.c eligible_child, kernel_wait4.
#ifndef AGENT_PROCFS_CLONE_WAITER_H_
#define AGENT_PROCFS_CLONE_WAITER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/procfs/procfs.h"

namespace perfd::agent {

// line: "NUMBER ARGUMENTx6 SP PC" of a thread inside of a call; anything else waits for nobody.
bool WaitsForAnyClone(absl::string_view line);

// Thread id of the first one found; 0: none.
absl::StatusOr<int32_t> FindCloneWaiter(const ProcFs& procfs, int32_t pid);

}  // namespace perfd::agent

#endif  // AGENT_PROCFS_CLONE_WAITER_H_
