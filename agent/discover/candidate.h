// agent/discover/candidate.h - one local process as discovery sees it, and the judgements that need no other process.
//
// Shape    ReadCandidate gathers what /proc says; the predicates below are pure.
// Errors   ReadCandidate: kNotFound (gone). What is forbidden to read is left empty and `unreadable` says so.
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
#include "agent/procfs/procfs.h"

namespace perfd {

struct Candidate {
  int32_t pid = 0;
  uint32_t uid = 0;  // real uid: the owner
  uint64_t start_ticks = 0;
  char state = '?';
  bool unreadable = false;      // environment or executable may not be read
  bool has_executable = false;  // false: kernel thread or zombie
  std::string executable;       // path as the process sees it
  std::vector<std::string> arguments;
  std::vector<CgroupEntry> cgroups;
  RankEnvironment environment;
};

absl::StatusOr<Candidate> ReadCandidate(const ProcFs& procfs, int32_t pid);

// Base name of the executable, of argv[0], or of the script that an interpreter runs (`python3 -u x.py`, `sh x.sh`).
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

}  // namespace perfd

#endif  // AGENT_DISCOVER_CANDIDATE_H_
