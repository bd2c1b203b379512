// daemon/policy/job_request.h - from a job of a scheduler to the request for its profile. Pure.
//
// Shape    MakeJobRequest: who, what and which nodes; MatchNodes: the job's nodes among those with an agent; JobText: its name
//          for people.
// Errors   kInvalidArgument: host list, an id that is no job's.
#ifndef DAEMON_POLICY_JOB_REQUEST_H_
#define DAEMON_POLICY_JOB_REQUEST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/hook.h"
#include "core/model/identity.h"
#include "core/model/profile_spec.h"

namespace perfd::daemon {

struct JobRequest {
  ProfileSpec spec;
  Requester requester;             // the job's user, with no more rights than theirs
  std::vector<std::string> nodes;  // as the scheduler names them; empty: any
};

// "Slurm job 4711"; "job 4711" when the scheduler is not known.
std::string JobText(const HookJob& job);

absl::StatusOr<JobRequest> MakeJobRequest(const HookJob& job, const ProfileSpec& preset);

// "n7" of "n7.cluster.example": schedulers and kernels disagree about the rest.
absl::string_view ShortHost(absl::string_view host);

struct NodeMatch {
  std::vector<std::string> nodes;    // of `known`, each once
  std::vector<std::string> missing;  // of `wanted`
};
// A name that is the same counts before one that begins the same.
NodeMatch MatchNodes(const std::vector<std::string>& wanted, const std::vector<std::string>& known);

}  // namespace perfd::daemon

#endif  // DAEMON_POLICY_JOB_REQUEST_H_
