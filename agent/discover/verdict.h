// agent/discover/verdict.h - what one process is to a target: reads of it only what the verdict needs, cheapest first.
//
// Shape    Judge(procfs, scope, pid, stamp) -> Verdict.
// Order    the owner first. Of processes of others nothing else is read than what never waits: the name in stat for targets by
//          command; cgroup and executable for Slurm jobs. Then program and arguments, the rights, environment and cgroup.
// Errors   in Verdict::reason of a rejected process, as rank_finder.h lists them.
// Threads  thread-safe.
#ifndef AGENT_DISCOVER_VERDICT_H_
#define AGENT_DISCOVER_VERDICT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "agent/discover/candidate.h"
#include "core/model/identity.h"
#include "core/model/profile_spec.h"

namespace perfd::agent {

// Whose processes the target means.
struct Scope {
  const TargetSpec* target;
  const Requester* requester;
  uint32_t wanted_uid;  // only for targets by command

  // By its pid: then everything about it is worth a word.
  bool Names(int32_t pid) const;
};

// Of its owner alone: the process may have borrowed rights (setuid) all the same.
bool MayProfile(const Scope& scope, uint32_t uid);

// Whoever asks does not see the processes of others here: then it is not said that they are there. Reads /proc/mounts, which may be
// long: only for who has something to say of them. Source: proc(5), mount option hidepid.
bool HidesOthers(const ProcFs& procfs, const Scope& scope);
// What is said of a pid that there is not, where others' are hidden.
absl::Status NotYours(const Scope& scope, int32_t pid);

struct Verdict {
  enum class Kind {
    kNoMatch,
    kAccepted,
    kRejected,  // named or matching, but not usable: `reason`
    kForeign,   // matches a command, but is another user's
    kStuck,  // matches, or perhaps does: it waits in the kernel or does not answer; `reason`: it does match
  };
  Kind kind = Kind::kNoMatch;
  Candidate candidate;
  absl::Status reason;
};

Verdict Judge(const ProcFs& procfs, const Scope& scope, int32_t pid, const ProcessStamp& stamp);

}  // namespace perfd::agent

#endif  // AGENT_DISCOVER_VERDICT_H_
