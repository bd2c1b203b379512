// agent/discover/rank_finder.h - which local processes are ranks of the job that a target names.
//
// Shape    Find returns the accepted ranks and every process that was named but refused, with the reason.
// Errors   kNotFound: nothing on this node matches (not an error for a cluster-wide target).
//          Reasons of a refusal: kPermissionDenied (another user's), kNotFound (gone), kUnimplemented (32-bit, script
//          interpreter without loops of ours, not x86-64), kFailedPrecondition.
// Threads  thread-safe (const).
// Source   PMIx standard (PMIX_RANK), Open MPI (OMPI_COMM_WORLD_*), PMI (PMI_RANK), Slurm srun(1) (SLURM_PROCID).
#ifndef AGENT_DISCOVER_RANK_FINDER_H_
#define AGENT_DISCOVER_RANK_FINDER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/procfs/procfs.h"
#include "core/model/identity.h"
#include "core/model/profile_spec.h"

namespace perfd {

struct RejectedProcess {
  int32_t pid = 0;
  absl::Status reason;
};

struct Discovery {
  std::vector<RankInfo> ranks;            // by rank, then pid
  std::vector<RejectedProcess> rejected;  // named or matching, but not usable
  std::string cgroup;  // the job's own cgroup when it holds nothing but the job; else empty
};

class RankFinder {
 public:
  RankFinder(ProcFs procfs, std::string node);

  absl::StatusOr<Discovery> Find(const TargetSpec& target, const std::vector<RankRange>& ranks,
                                 const Requester& requester) const;

 private:
  ProcFs procfs_;
  std::string node_;
};

}  // namespace perfd

#endif  // AGENT_DISCOVER_RANK_FINDER_H_
