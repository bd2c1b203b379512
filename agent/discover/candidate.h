// agent/discover/candidate.h - one local process as discovery sees it, and the judgements that need no other process.
//
// Shape    ReadOwner comes first: of processes that are not the requester's nothing else is read. Then ReadExecutable,
//          ReadArguments, ReadRights and ReadEnvironment, as needed; the predicates are pure.
// Errors   Read*: kNotFound (gone). What is forbidden to read, or did not answer in time, is left empty, and `unread` says so.
// Safety   of a process whose main thread waits in the kernel (state D) nothing is read that needs its memory. Others' memory may
//          be locked all the same: see agent/procfs/slow_files.h.
// Threads  thread-safe.
#ifndef AGENT_DISCOVER_CANDIDATE_H_
#define AGENT_DISCOVER_CANDIDATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/discover/rank_environment.h"
#include "agent/procfs/admission.h"
#include "agent/procfs/procfs.h"

namespace perfd::agent {

struct Candidate {
  int32_t pid = 0;
  uint32_t uid = 0;  // real uid: the owner
  Admission admission;
  uint64_t start_ticks = 0;
  char state = '?';
  std::string name;  // in stat: may be cut off, and changed by the process
  absl::Status
      unread;  // kPermissionDenied: something may not be read; kUnavailable: a read was given up
  bool has_executable = false;  // false: kernel thread or zombie
  std::string executable;       // path as the process sees it
  std::vector<std::string> arguments;
  std::vector<CgroupEntry> cgroups;
  RankEnvironment environment;
};

// A read of it was given up.
inline bool IsSilent(const Candidate& candidate) {
  return absl::IsUnavailable(candidate.unread);
}

// Its memory cannot be read without the risk of waiting with it.
inline bool IsStuck(const Candidate& candidate) {
  return candidate.state == 'D' || IsSilent(candidate);
}

// Whose it is, by what never waits: user, groups and capabilities of the main thread.
absl::Status ReadOwner(const ProcFs& procfs, Candidate* candidate);
absl::Status ReadExecutable(const ProcFs& procfs, Candidate* candidate);
// Not of a stuck one, nor of what has no executable.
absl::Status ReadArguments(const ProcFs& procfs, Candidate* candidate);
// All that its requester's right to it depends on.
absl::Status ReadRights(const ProcFs& procfs, Candidate* candidate);
// Not of a stuck one.
absl::Status ReadEnvironment(const ProcFs& procfs, Candidate* candidate);
// Everything was about one process: a reused pid starts at another time.
absl::Status CheckSame(const ProcFs& procfs, const Candidate& candidate);

// The part of a path after its last slash.
absl::string_view BaseName(absl::string_view path);

// Python, a shell and the like: what it runs is among its arguments.
bool IsInterpreter(absl::string_view base_name);

// By its name in stat alone.
bool MayBeCommand(const Candidate& candidate, absl::string_view command);

// Base name of the executable, of argv[0], or of the script that an interpreter runs (`python3 -u x.py`, `sh x.sh`), as it is
// shown: commands are UTF-8.
bool MatchesCommand(const Candidate& candidate, absl::string_view command);

// By environment, or by a component job_<id> of a cgroup path (Slurm's proctrack/cgroup; its cgroup.conf(5)).
bool BelongsToSlurmJob(const Candidate& candidate, uint32_t job);

// mpirun, srun, slurmstepd and their like start ranks and are none.
bool IsLauncher(absl::string_view base_name);

// Shells and wrappers (sh, time, numactl) run with a rank's environment around the real program.
bool IsWrapper(absl::string_view base_name);

// OK for what can be sampled here: a live 64-bit x86 process. `head` is the start of its executable.
absl::Status CheckRunnable(const Candidate& candidate, absl::string_view head);

std::string CommandName(const Candidate& candidate);

}  // namespace perfd::agent

#endif  // AGENT_DISCOVER_CANDIDATE_H_
