#include "agent/discover/job_choice.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace perfd::agent {
namespace {

constexpr size_t kMaxNamed = 8;  // jobs in a message, and pids of each

bool IsRank(const Candidate& candidate) {
  return candidate.environment.source != RankSource::kNone;
}

std::string PidsText(const std::vector<int32_t>& pids) {
  const size_t shown = std::min(pids.size(), kMaxNamed);
  return absl::StrCat(
      pids.size() == 1 ? "pid " : "pids ",
      absl::StrJoin(pids.begin(), pids.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      shown < pids.size() ? ", ..." : "");
}

absl::Status SeveralJobs(const std::vector<Candidate>& candidates) {
  std::map<std::string, std::vector<int32_t>> jobs;
  for (const Candidate& candidate : candidates) {
    if (IsRank(candidate)) jobs[candidate.environment.job_id].push_back(candidate.pid);
  }
  std::vector<std::string> lines;
  for (const auto& [id, pids] : jobs) {
    if (lines.size() == kMaxNamed) break;
    lines.push_back(absl::StrCat(id.empty() ? "a job without id" : absl::StrCat("job ", id), " (",
                                 PidsText(pids), ")"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the target matches ", jobs.size(), " MPI jobs: ", absl::StrJoin(lines, ", "),
      lines.size() < jobs.size() ? ", ..." : "", "; say which with --pid or --slurm-job"));
}

}  // namespace

std::vector<std::string> JobIds(const std::vector<Candidate>& candidates) {
  std::set<std::string> ids;
  for (const Candidate& candidate : candidates) {
    if (IsRank(candidate)) ids.insert(candidate.environment.job_id);
  }
  return {ids.begin(), ids.end()};
}

absl::Status ChooseJob(std::optional<std::string>* job_id, std::vector<Candidate>* candidates) {
  if (!job_id->has_value()) {
    const std::vector<std::string> ids = JobIds(*candidates);
    if (ids.size() > 1) return SeveralJobs(*candidates);
    if (!ids.empty()) *job_id = ids[0];
  }
  std::erase_if(*candidates, [&](const Candidate& candidate) {
    return IsRank(candidate) && candidate.environment.job_id != *job_id;
  });
  return absl::OkStatus();
}

std::string CollidingLaunches(const std::vector<Candidate>& candidates) {
  std::map<std::pair<std::string, int32_t>, std::string> launch_of;  // of a job's rank
  for (const Candidate& candidate : candidates) {
    if (!IsRank(candidate)) continue;
    const RankEnvironment& environment = candidate.environment;
    const auto [place, is_new] =
        launch_of.try_emplace({environment.job_id, environment.rank}, environment.launch);
    if (!is_new && place->second != environment.launch) {
      return absl::StrCat("job ", environment.job_id,
                          " has several launches (steps) at a time: rank ", environment.rank,
                          " and perhaps others are the sum of theirs; --pid tells them apart");
    }
  }
  return {};
}

}  // namespace perfd::agent
