// core/analysis/jobs/job_line.h - what a profile says of a job, in one line that a batch system can keep (Slurm's AdminComment).
//
// Shape    perfd p-000042: 83% in 4 loops; triad.c:12 memory bound 0.97 (gain 31%); cost 0.6%
//          share of the hot loops (of elapsed time where it is divided, else of CPU time); the loop whose best fix would save most, its verdict, the saturation behind it (LS of a
//          memory bound loop, FP of an arithmetic bound one), what the fix would save at most; added wall time. Where
//          nothing was measured or has a name: the heaviest loop and its share. A gain that not all ranks have says how many do. "failed: ..." with the reason where there is no result.
// Limits   at most kMaxJobLine letters of A-Z a-z 0-9 blank . , : ; % ( ) + - / _ : nothing that a shell, sacct's '|' or a
//          quoted string gives a meaning to; all others become '_'.
// Threads  thread-safe (pure).
// Source   scontrol(1) AdminComment; sacct(1) --parsable.
#ifndef CORE_ANALYSIS_JOBS_JOB_LINE_H_
#define CORE_ANALYSIS_JOBS_JOB_LINE_H_

#include <cstddef>
#include <string>

#include "core/model/report.h"

namespace perfd {

inline constexpr size_t kMaxJobLine = 200;

std::string JobLine(const Report& report);

}  // namespace perfd

#endif  // CORE_ANALYSIS_JOBS_JOB_LINE_H_
