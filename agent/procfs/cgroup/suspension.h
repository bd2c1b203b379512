// agent/procfs/cgroup/suspension.h - is a process kept from running by somebody: stopped by a signal, or frozen with its group?
//
// Shape    SuspendedBy looks once.
// Errors   none: what cannot be read suspends nobody.
// Source   proc(5) stat, state T; cgroups(7): cgroup.freeze of version 2, freezer.state of version 1, which tells of the groups
//          above, too.
#ifndef AGENT_PROCFS_CGROUP_SUSPENSION_H_
#define AGENT_PROCFS_CGROUP_SUSPENSION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "agent/procfs/procfs.h"

namespace perfd::agent {

// By what, for a reader; empty: it may run.
std::string SuspendedBy(const ProcFs& procfs, int32_t pid);

// kUnavailable while it is suspended: what waits for its threads would wait for whoever suspended it.
absl::Status CheckNotSuspended(const ProcFs& procfs, int32_t pid);

}  // namespace perfd::agent

#endif  // AGENT_PROCFS_CGROUP_SUSPENSION_H_
