// agent/discover/rank_environment.h - what a process's environment says about its place in a job. Pure.
//
// Shape    ReadRankEnvironment(env) -> rank, world size, job; source kNone when nothing says that it is a rank.
// Errors   values that are not numbers, are negative or exceed 2^30 count as absent: they are a user's bytes.
// Source   PMIx standard 4.1 section 5.1 (PMIX_RANK, PMIX_NAMESPACE); mpirun(1) of Open MPI 4.1, "Exported Environment
//          Variables" (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE); PMI-1 as set by Hydra (PMI_RANK, PMI_SIZE,
//          PMI_ID/PMI_JOBID); srun(1) OUTPUT ENVIRONMENT VARIABLES (SLURM_*).
#ifndef AGENT_DISCOVER_RANK_ENVIRONMENT_H_
#define AGENT_DISCOVER_RANK_ENVIRONMENT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "core/model/identity.h"

namespace perfd::agent {

using EnvironmentMap = absl::flat_hash_map<std::string, std::string>;

struct RankEnvironment {
  RankSource source = RankSource::kNone;
  int32_t rank = 0;
  int32_t world_size = 0;  // 0: unknown
  std::optional<uint32_t> slurm_job;
  std::string job_id;  // Slurm job, else the launcher's name space; empty: unknown
  std::string launch;  // tells launches (steps, mpirun calls) inside one job apart
};

RankEnvironment ReadRankEnvironment(const EnvironmentMap& environment);

}  // namespace perfd::agent

#endif  // AGENT_DISCOVER_RANK_ENVIRONMENT_H_
