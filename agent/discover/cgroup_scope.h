// agent/discover/cgroup_scope.h - a cgroup that holds one Slurm job and nothing else, as perf_event_open wants it.
//
// Shape    FindJobCgroup -> directory, or empty when there is none that is safe to sample as a whole.
// Rules    a path component job_<id>; every rank lies below it; every process below it is the owner's, or a slurmstepd.
// Source   cgroup.conf(5) and the cgroup/v2 plugin of Slurm (job_<id>/step_<n>/...); perf_event_open(2)
//          PERF_FLAG_PID_CGROUP; Documentation/admin-guide/cgroup-v2.rst "cgroup.procs".
#ifndef AGENT_DISCOVER_CGROUP_SCOPE_H_
#define AGENT_DISCOVER_CGROUP_SCOPE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/procfs/procfs.h"
#include "core/model/identity.h"

namespace perfd::agent {

// The part of `path` up to and including the first component job_<digits>; empty: none. With an id, only that job's.
std::string JobPart(absl::string_view path, absl::string_view job_id);

std::string FindJobCgroup(const ProcFs& procfs, const std::vector<RankInfo>& ranks);

}  // namespace perfd::agent

#endif  // AGENT_DISCOVER_CGROUP_SCOPE_H_
