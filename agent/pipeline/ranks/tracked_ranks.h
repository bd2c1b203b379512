// agent/pipeline/ranks/tracked_ranks.h - the processes of one session: who they are, what they have
//                                        mapped, whether they live.
//
// Shape    Add each discovered rank, Follow their forks and execs, Refresh to see who has ended or
//          changed owner.
// Safety   a process whose ids are not what they were when it was added (a setuid program, a root
//          process that became someone) is not the one that the requester asked for: Find hides it
//          at once, Refresh tells of it.
// Loss     samples are read after they were taken: ended helpers are kept for kKeepEndedNs of
//          reading, and a child that ended before its fork was heard of is one too, with the
//          mappings of its parent.
// Threads  thread-bound (the session's thread).
#ifndef AGENT_PIPELINE_RANKS_TRACKED_RANKS_H_
#define AGENT_PIPELINE_RANKS_TRACKED_RANKS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "agent/pipeline/address_space.h"
#include "agent/pipeline/stack_source.h"
#include "agent/procfs/admission.h"
#include "agent/procfs/procfs.h"
#include "agent/wall/process_time.h"
#include "core/model/identity.h"

namespace perfd::agent {

// What a process used of its CPUs up to the last Refresh.
struct ProcessUse {
  uint64_t cpu_ns = 0;
  int64_t seen_ns = 0;                        // by then it had lived as long as `window` says
  std::map<int32_t, ThreadSchedule> threads;  // by tid, those that lived then
  ProcessTime window;                         // since the last DrainTimes
};

// Whether somebody kept a process from running: stopped or frozen.
struct Suspended {
  int64_t ns = 0;  // estimated: a look at each Refresh
  std::string by;  // the last time
};

struct TrackedProcess {
  RankInfo info;
  Admission admission;      // when it was added, or has executed another program since
  absl::Status not_itself;  // changed_owner: what has changed
  std::string executable;
  std::string executable_before;  // its last exec
  AddressSpace space;
  uint32_t image = 0;  // counts its programs (exec)
  std::shared_ptr<const StackTarget>
      stack_target;       // what its stacks are unwound with; null: not yet asked for
  int32_t helper_of = 0;  // a child of this rank, counted under its number; 0: a rank
  bool ended = false;     // or changed its owner, or is followed no longer
  bool changed_owner = false;
  bool change_told = false;  // by Refresh
  int64_t ended_ns = 0;      // what had been read when its end was seen
  ProcessUse use;
  int64_t maps_due_ns = 0;  // monotonic time of the next look at its maps, at the earliest
  Suspended suspended;
};

class TrackedRanks {
 public:
  // privileged: the requester may profile programs that run with borrowed rights (setuid).
  explicit TrackedRanks(const ProcFs& procfs, bool privileged = false)
      : procfs_(procfs), privileged_(privileged) {}

  // kNotFound: it has ended. kPermissionDenied: its owner is not info.uid, its rights are
  // borrowed, or it may not be looked into.
  absl::Status Add(const RankInfo& info, int64_t now_ns);
  // A child of a tracked process: same rank. Null when it is already gone, or has other rights than
  // its parent.
  TrackedProcess* AddChild(int32_t parent_pid, int32_t pid, int64_t now_ns);
  // Null also for a process that has changed its owner.
  TrackedProcess* Find(int32_t pid);
  bool Contains(int32_t pid) const { return processes_.contains(pid); }
  bool Lives(int32_t pid) const;
  // This very process: a reused pid is another one.
  bool Knows(const RankInfo& info) const;
  // Reads the maps anew, at most once a second per process.
  void ReadMaps(TrackedProcess& process, int64_t now_ns);
  // It runs another program since that time (0: since a moment ago): looks at its owner, then at
  // its maps.
  void Exec(TrackedProcess& process, uint64_t time_ns, int64_t now_ns);
  // What all used since the last call; appends those that have ended and those that have changed
  // their owner since then (valid until the next call; without `changed`, these are among `ended`).
  // read_ns: samples up to then have been read. Helpers are forgotten a while later: a job may
  // start them for ever.
  static constexpr int64_t kKeepEndedNs = 2'000'000'000;
  CpuUse Refresh(int64_t read_ns, std::vector<const TrackedProcess*>* ended,
                 std::vector<const TrackedProcess*>* changed = nullptr);
  // The rank is followed no longer: its processes, and what they start, count as ended. -> those that lived.
  std::vector<int32_t> Leave(int32_t rank_pid);
  // That live, of each rank with its children, by its pid.
  std::map<int32_t, uint64_t> ThreadsByRank() const;
  // Whose maps were not read in time, each process once, with a sentence about it.
  std::vector<std::pair<RankInfo, absl::Status>> DrainSilent() {
    return std::exchange(silent_, {});
  }
  // Of ranks and helpers, as the calls of Refresh saw them since the last call of this. Ranks that have ended have no time
  // any more, and are told: some of their samples may have been read since.
  std::vector<ProcessTime> DrainTimes();
  // Ranks (without their helpers) that live, and all that ever were.
  int living() const;
  std::vector<const TrackedProcess*> LivingRanks() const;
  std::vector<RankInfo> infos() const;
  // Ranks that stood at some Refresh because somebody had suspended them.
  std::vector<const TrackedProcess*> SuspendedRanks() const;

 private:
  void LoadMaps(TrackedProcess& process, int64_t now_ns);
  absl::Status CheckRights(const RankInfo& info, const Admission& admission) const;
  void Replace(TrackedProcess old);
  bool HasEnded(TrackedProcess& process);
  void CountSuspension(TrackedProcess& process, int64_t since_ns);
  CpuUse CountUse(TrackedProcess& process, int64_t read_ns);
  TrackedProcess* AddEndedChild(const TrackedProcess& parent, int32_t pid);

  const ProcFs& procfs_;
  const bool privileged_;
  std::map<int32_t, TrackedProcess> processes_;
  std::set<int32_t> left_;      // ranks, by pid
  std::vector<RankInfo> past_;  // ranks whose pid has been reused
  std::vector<TrackedProcess>
      replaced_;                      // by a process of the same pid, before Refresh saw their end
  std::vector<TrackedProcess> told_;  // what the last Refresh told of them
  std::vector<std::pair<RankInfo, absl::Status>> silent_;
  std::map<int32_t, uint64_t> silent_told_;  // by DrainSilent: pid -> start
  int64_t read_ns_ = 0;                      // at the last Refresh
};

// The rank that it is, or is a child of.
inline int32_t PidOfRank(const TrackedProcess& process) {
  return process.helper_of != 0 ? process.helper_of : process.info.pid;
}

// What it ran at the time of a sample.
inline const std::string& ExecutableAt(const TrackedProcess& process, uint64_t time_ns) {
  return time_ns < process.space.exec_ns() ? process.executable_before : process.executable;
}

// What to tell the user about a process of `changed`.
absl::Status ChangedOwnerError(const TrackedProcess& process);

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_RANKS_TRACKED_RANKS_H_
