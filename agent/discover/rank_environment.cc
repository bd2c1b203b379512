#include "agent/discover/rank_environment.h"

#include <initializer_list>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/model/hook.h"

namespace perfd::agent {
namespace {

constexpr int32_t kMaxRank = 1 << 30;
constexpr size_t kMaxJobIdBytes = 128;

// The first of `names` that is set to something.
std::string FirstText(const EnvironmentMap& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = environment.find(name);
    if (found != environment.end() && !found->second.empty()) {
      return found->second.substr(0, kMaxJobIdBytes);
    }
  }
  return {};
}

std::optional<int32_t> FirstNumber(const EnvironmentMap& environment,
                                   std::initializer_list<const char*> names) {
  for (const char* name : names) {
    int32_t number = 0;
    const auto found = environment.find(name);
    if (found != environment.end() && absl::SimpleAtoi(found->second, &number) && number >= 0 &&
        number <= kMaxRank) {
      return number;
    }
  }
  return std::nullopt;
}

// As deploy/hooks names it; an element of an LSF job array is its id and its index, from 1.
std::string OtherJob(const EnvironmentMap& environment) {
  if (std::string pbs = FirstText(environment, {"PBS_JOBID"}); !pbs.empty()) return pbs;
  const std::string lsf = FirstText(environment, {"LSB_JOBID"});
  if (lsf.empty()) return FirstText(environment, {"FLUX_JOB_ID"});
  const std::string index = FirstText(environment, {"LSB_JOBINDEX"});
  return index.empty() || index == "0" ? lsf : absl::StrCat(lsf, "[", index, "]");
}

struct Scheme {
  RankSource source;
  const char* rank;
  std::initializer_list<const char*> size;
};

}  // namespace

RankEnvironment ReadRankEnvironment(const EnvironmentMap& environment) {
  // Innermost launcher first: under Slurm, mpirun's ranks inherit the SLURM_PROCID of the daemon that started them.
  static const Scheme kSchemes[] = {
      {RankSource::kPmix, "PMIX_RANK", {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}},
      {RankSource::kOpenMpi, "OMPI_COMM_WORLD_RANK", {"OMPI_COMM_WORLD_SIZE"}},
      {RankSource::kPmi, "PMI_RANK", {"PMI_SIZE"}},
      {RankSource::kSlurm, "SLURM_PROCID", {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}},
  };
  RankEnvironment result;
  for (const Scheme& scheme : kSchemes) {
    const std::optional<int32_t> rank = FirstNumber(environment, {scheme.rank});
    if (!rank.has_value()) continue;
    result.source = scheme.source;
    result.rank = *rank;
    const int32_t size = FirstNumber(environment, scheme.size).value_or(0);
    result.world_size = size > *rank ? size : 0;  // a size that contradicts the rank is not a size
    break;
  }
  uint32_t slurm_job = 0;
  const std::string slurm = FirstText(environment, {"SLURM_JOB_ID", "SLURM_JOBID"});
  if (absl::SimpleAtoi(slurm, &slurm_job) && slurm_job != 0) result.slurm_job = slurm_job;
  // PBS, LSF and Flux: known by the same number to the scheduler hook (core/model/hook.h).
  if (slurm.empty()) result.slurm_job = JobNumber(OtherJob(environment));
  const std::string name_space =
      FirstText(environment, {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "PMI_ID"});
  result.job_id = result.slurm_job.has_value() ? absl::StrCat(*result.slurm_job) : name_space;
  result.launch = result.source == RankSource::kSlurm
                      ? FirstText(environment, {"SLURM_STEP_ID", "SLURM_STEPID"})
                      : name_space;
  return result;
}

}  // namespace perfd::agent
