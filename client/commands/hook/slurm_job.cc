#include "client/commands/hook/slurm_job.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace perfd::client {
namespace {

bool IsSet(const std::string& value) {
  return !value.empty() && value != "0";
}

// Names differ between releases of Slurm: docs/scheduler_hook.md, "What Slurm tells Prolog and Epilog".
std::string EitherOf(const Environment& environment, const char* name, const char* other) {
  std::string value = environment(name);
  return value.empty() ? environment(other) : value;
}

}  // namespace

absl::StatusOr<HookJob> JobOfSlurm(const Environment& environment, const std::string& host) {
  HookJob job;
  job.scheduler = "Slurm";
  job.job = environment("SLURM_JOB_ID");
  if (job.job.empty())
    return absl::InvalidArgumentError(
        "SLURM_JOB_ID is not set: this is no prolog or epilog of Slurm (see `perfctl hook "
        "--help`)");
  const std::string uid = environment("SLURM_JOB_UID");
  if (!absl::SimpleAtoi(uid, &job.uid))
    return absl::InvalidArgumentError("SLURM_JOB_UID is not the number of a user");
  const std::string restart =
      EitherOf(environment, "SLURM_RESTART_COUNT", "SLURM_JOB_RESTART_COUNT");
  if (!restart.empty() && (!absl::SimpleAtoi(restart, &job.restart) || job.restart < 0))
    return absl::InvalidArgumentError("SLURM_RESTART_COUNT is not a count");
  job.cluster = environment("SLURM_CLUSTER_NAME");
  job.user = environment("SLURM_JOB_USER");
  job.account = environment("SLURM_JOB_ACCOUNT");
  job.partition = environment("SLURM_JOB_PARTITION");
  job.nodes = EitherOf(environment, "SLURM_JOB_NODELIST", "SLURM_NODELIST");
  job.node = environment("SLURMD_NODENAME");
  // A prolog or epilog of slurmctld runs on no node of the job.
  const bool of_node = !absl::EndsWith(environment("SLURM_SCRIPT_CONTEXT"), "_slurmctld");
  if (job.node.empty() && of_node) job.node = host;
  const std::string preset = environment("SPANK_PERFD_PROFILE");
  if (IsSet(environment("SPANK_PERFD_NO_PROFILE"))) {
    job.preference = HookPreference::kOptOut;
  } else if (IsSet(preset)) {
    job.preference = HookPreference::kOptIn;
    if (preset != "default") job.preset = preset;
  }
  return job;
}

}  // namespace perfd::client
