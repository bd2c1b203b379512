#include "agent/discover/rank_environment.h"

#include <gtest/gtest.h>

#include "core/model/hook.h"

namespace perfd::agent {
namespace {

TEST(RankEnvironment, NothingSaysNothing) {
  const RankEnvironment none = ReadRankEnvironment({{"PATH", "/bin"}});
  EXPECT_EQ(none.source, RankSource::kNone);
  EXPECT_FALSE(none.slurm_job.has_value());
}

TEST(RankEnvironment, OpenMpiUnderPmix) {
  const RankEnvironment r = ReadRankEnvironment({{"PMIX_RANK", "3"},
                                                 {"PMIX_NAMESPACE", "2004090881"},
                                                 {"OMPI_COMM_WORLD_RANK", "3"},
                                                 {"OMPI_COMM_WORLD_SIZE", "8"}});
  EXPECT_EQ(r.source, RankSource::kPmix);
  EXPECT_EQ(r.rank, 3);
  EXPECT_EQ(r.world_size, 8);
  EXPECT_EQ(r.job_id, "2004090881");
}

TEST(RankEnvironment, EachSchemeAlone) {
  EXPECT_EQ(
      ReadRankEnvironment({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}).source,
      RankSource::kOpenMpi);
  const RankEnvironment pmi = ReadRankEnvironment({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  EXPECT_EQ(pmi.source, RankSource::kPmi);
  EXPECT_EQ(pmi.world_size, 2);
  const RankEnvironment slurm = ReadRankEnvironment({{"SLURM_PROCID", "5"},
                                                     {"SLURM_NTASKS", "6"},
                                                     {"SLURM_JOBID", "4711"},
                                                     {"SLURM_STEP_ID", "2"}});
  EXPECT_EQ(slurm.source, RankSource::kSlurm);
  EXPECT_EQ(slurm.job_id, "4711");
  EXPECT_EQ(slurm.slurm_job, 4711u);
  EXPECT_EQ(slurm.launch, "2");
}

TEST(RankEnvironment, TheInnermostLauncherWins) {
  const RankEnvironment r = ReadRankEnvironment({{"PMIX_RANK", "7"},
                                                 {"OMPI_COMM_WORLD_SIZE", "8"},
                                                 {"SLURM_PROCID", "0"},
                                                 {"SLURM_NTASKS", "2"},
                                                 {"SLURM_JOB_ID", "12"}});
  EXPECT_EQ(r.rank, 7);
  EXPECT_EQ(r.world_size, 8);
  EXPECT_EQ(r.job_id, "12");
}

TEST(RankEnvironment, OtherSchedulersNumberTheirJobsToo) {
  EXPECT_EQ(ReadRankEnvironment({{"PBS_JOBID", "4711.server"}}).slurm_job, 4711u);
  EXPECT_EQ(ReadRankEnvironment({{"LSB_JOBID", "12"}}).slurm_job, 12u);
  EXPECT_EQ(ReadRankEnvironment({{"FLUX_JOB_ID", "f2Lg9kz"}}).slurm_job, JobNumber("f2Lg9kz"));
  EXPECT_EQ(ReadRankEnvironment({{"SLURM_JOB_ID", "5"}, {"PBS_JOBID", "6"}}).slurm_job, 5u);
}

// As deploy/hooks names them to perfd.
TEST(RankEnvironment, ElementsOfJobArraysAreJobsOfTheirOwn) {
  const auto pbs = ReadRankEnvironment({{"PBS_JOBID", "4711[3].server"}}).slurm_job;
  EXPECT_EQ(pbs, JobNumber("4711[3].server"));
  EXPECT_NE(pbs, ReadRankEnvironment({{"PBS_JOBID", "4711[4].server"}}).slurm_job);
  EXPECT_EQ(ReadRankEnvironment({{"LSB_JOBID", "12"}, {"LSB_JOBINDEX", "3"}}).slurm_job,
            JobNumber("12[3]"));
  EXPECT_EQ(ReadRankEnvironment({{"LSB_JOBID", "12"}, {"LSB_JOBINDEX", "0"}}).slurm_job, 12u);
  EXPECT_EQ(ReadRankEnvironment({{"LSB_JOBINDEX", "3"}}).slurm_job, std::nullopt);
}

TEST(RankEnvironment, ValuesThatCannotBeAreAbsent) {
  EXPECT_EQ(ReadRankEnvironment({{"PMIX_RANK", "-1"}}).source, RankSource::kNone);
  EXPECT_EQ(ReadRankEnvironment({{"PMIX_RANK", "1x"}}).source, RankSource::kNone);
  EXPECT_EQ(ReadRankEnvironment({{"PMIX_RANK", "99999999999"}}).source, RankSource::kNone);
  EXPECT_EQ(ReadRankEnvironment({{"PMIX_RANK", "1073741824"}}).source, RankSource::kPmix);
  EXPECT_EQ(ReadRankEnvironment({{"PMIX_RANK", "1073741825"}}).source, RankSource::kNone);
  EXPECT_EQ(ReadRankEnvironment({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}).world_size, 0);
}

}  // namespace
}  // namespace perfd::agent
