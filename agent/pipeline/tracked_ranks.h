// agent/pipeline/tracked_ranks.h - the processes of one session: who they are, what they have mapped, whether they live.
//
// Shape    Add each discovered rank, Follow their forks and execs, Refresh to see who has ended.
// Threads  thread-bound (the session's thread).
#ifndef AGENT_PIPELINE_TRACKED_RANKS_H_
#define AGENT_PIPELINE_TRACKED_RANKS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/pipeline/address_space.h"
#include "agent/procfs/procfs.h"
#include "core/model/identity.h"

namespace perfd {

struct TrackedProcess {
  RankInfo info;
  uint32_t gid = 0;
  std::string executable;
  AddressSpace space;
  bool helper = false;          // a child of a rank, counted under the rank's number
  bool ended = false;
  int looks_since_end = 0;      // Refresh calls since then
  uint64_t cpu_ns = 0;          // at the last Refresh
  int64_t maps_read_ns = 0;     // monotonic time of the last look at its maps
};

class TrackedRanks {
 public:
  explicit TrackedRanks(const ProcFs& procfs) : procfs_(procfs) {}

  absl::Status Add(const RankInfo& info, int64_t now_ns);
  // A child of a tracked process: same rank. Null when it is already gone.
  TrackedProcess* AddChild(int32_t parent_pid, int32_t pid, int64_t now_ns);
  TrackedProcess* Find(int32_t pid);
  bool Contains(int32_t pid) const { return processes_.contains(pid); }
  // Reads the maps anew, at most once a second per process.
  void ReadMaps(TrackedProcess& process, int64_t now_ns, bool force);
  // CPU time used by all since the last call, ns; appends those that have ended since then (valid until the next call).
  // Helpers are forgotten some calls after their end: a job may start them for ever.
  uint64_t Refresh(std::vector<const TrackedProcess*>* ended);
  // Ranks (without their helpers) that live, and all that ever were.
  int living() const;
  std::vector<RankInfo> infos() const;

 private:
  const ProcFs& procfs_;
  std::map<int32_t, TrackedProcess> processes_;
};

}  // namespace perfd

#endif  // AGENT_PIPELINE_TRACKED_RANKS_H_
