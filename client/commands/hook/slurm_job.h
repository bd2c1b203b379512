// client/commands/hook/slurm_job.h - the job that a Slurm prolog or epilog is called for, from its environment.
//
// Errors   kInvalidArgument: a variable that must be there is not, or makes no sense.
// Threads  thread-safe (pure).
// Source   prolog_epilog(5), "Environment variables"; SPANK_PERFD_*: docs/scheduler_hook.md.
#ifndef CLIENT_COMMANDS_HOOK_SLURM_JOB_H_
#define CLIENT_COMMANDS_HOOK_SLURM_JOB_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "core/model/hook.h"

namespace perfd::client {

// The value of a variable; empty: it is not set.
using Environment = std::function<std::string(const char* name)>;

// `host`: the name of this node, for a Slurm that does not tell its own.
absl::StatusOr<HookJob> JobOfSlurm(const Environment& environment, const std::string& host);

}  // namespace perfd::client

#endif  // CLIENT_COMMANDS_HOOK_SLURM_JOB_H_
