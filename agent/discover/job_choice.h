// agent/discover/job_choice.h - one MPI job of those that run the same program: two have the same rank numbers. Pure.
//
// Shape    ChooseJob drops the ranks of other jobs than `*job_id`, or sets it to the only one there is.
// Errors   kFailedPrecondition: several jobs and none chosen; the text lists them with pids and says what to do.
// Rules    a process without a rank number is of no job and always kept.
#ifndef AGENT_DISCOVER_JOB_CHOICE_H_
#define AGENT_DISCOVER_JOB_CHOICE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/discover/candidate.h"

namespace perfd::agent {

// Of all ranks, each once, sorted; "" is a launcher that names none.
std::vector<std::string> JobIds(const std::vector<Candidate>& candidates);

absl::Status ChooseJob(std::optional<std::string>* job_id, std::vector<Candidate>* candidates);

// Steps of one Slurm job may have the same rank numbers: a sentence about it, or nothing.
std::string CollidingLaunches(const std::vector<Candidate>& candidates);

}  // namespace perfd::agent

#endif  // AGENT_DISCOVER_JOB_CHOICE_H_
