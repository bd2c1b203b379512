// agent/discover/rank_finder.h - which local processes are ranks of the job that a target names.
//
// Shape    Find returns the accepted ranks and every process that was named but refused, with the
//          reason.
// Errors   kNotFound: nothing on this node matches (not an error for a cluster-wide target), or,
//          for a command, only processes of other users do; the text counts them.
//          Processes that only wait for their children are no ranks: `launchers` names them. Of named
//          ones, refused when nothing else is left.
//          kFailedPrecondition: a command that several MPI jobs of the user run; the text lists
//          them. Reasons of a refusal: kPermissionDenied (another user's, or with another's rights:
//          setuid), kNotFound (gone, or a zombie), kUnimplemented (32-bit, not x86-64),
//          kUnavailable (stuck in the kernel), kFailedPrecondition.
// Threads  thread-safe (const); a ProcessScan has one user.
// Source   PMIx standard (PMIX_RANK), Open MPI (OMPI_COMM_WORLD_*), PMI (PMI_RANK), Slurm srun(1)
//          (SLURM_PROCID).
#ifndef AGENT_DISCOVER_RANK_FINDER_H_
#define AGENT_DISCOVER_RANK_FINDER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "agent/discover/process_scan.h"
#include "agent/discover/tree/launchers.h"
#include "agent/procfs/procfs.h"
#include "core/model/identity.h"
#include "core/model/profile_spec.h"

namespace perfd::agent {

struct RejectedProcess {
  int32_t pid = 0;
  absl::Status reason;
};

struct Discovery {
  std::vector<RankInfo> ranks;            // by rank, then pid
  std::vector<RejectedProcess> rejected;  // named or matching, but not usable
  std::vector<std::string> job_ids;       // of the MPI ranks, each once
  std::vector<std::string> warnings;      // sentences for the user
  std::vector<LauncherNote> launchers;    // named or in the tree, and not among `ranks`
  std::string
      cgroup;  // the job's own cgroup when it holds nothing but the job; else empty. Only the first of a scan
};

class RankFinder {
 public:
  // `patience`: how long the first scan waits for processes that are stuck in the kernel.
  // `sleep`: how a look at processes with children waits (agent/discover/tree/launchers.h).
  RankFinder(ProcFs procfs, std::string node, absl::Duration patience = absl::Milliseconds(200),
             SleepFor sleep = absl::SleepFor);

  absl::StatusOr<Discovery> Find(const TargetSpec& target, const std::vector<RankRange>& ranks,
                                 const Requester& requester) const;
  // One of a series of scans for the same target and requester.
  absl::StatusOr<Discovery> Find(const TargetSpec& target, const std::vector<RankRange>& ranks,
                                 const Requester& requester, ProcessScan* scan) const;

 private:
  std::vector<LauncherNote> LeaveOutLaunchers(const Scope& scope, ProcessScan* scan,
                                              std::vector<Candidate>* accepted) const;

  ProcFs procfs_;
  std::string node_;
  absl::Duration patience_;
  SleepFor sleep_;
};

}  // namespace perfd::agent

#endif  // AGENT_DISCOVER_RANK_FINDER_H_
