#include "daemon/policy/job_request.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/hosts/host_list.h"

namespace perfd::daemon {
namespace {

constexpr size_t kMaxNameBytes = 128;  // of a profile

}  // namespace

std::string JobText(const HookJob& job) {
  return absl::StrCat(job.scheduler, job.scheduler.empty() ? "job " : " job ", job.job);
}

absl::StatusOr<JobRequest> MakeJobRequest(const HookJob& job, const ProfileSpec& preset) {
  const std::optional<uint32_t> number = JobNumber(job.job);
  if (!number.has_value())
    return absl::InvalidArgumentError(absl::StrCat("'", job.job, "' is not the id of a job"));
  JobRequest request;
  request.spec = preset;
  request.spec.target = {};
  request.spec.target.slurm_job = *number;
  if (request.spec.name.empty())
    request.spec.name = absl::StrCat("job ", job.job).substr(0, kMaxNameBytes);
  request.requester = {.uid = job.uid,
                       .name = job.user.empty() ? absl::StrCat(kUnknownUser, job.uid) : job.user,
                       .privileged = false};
  ASSIGN_OR_RETURN(request.nodes, ExpandHostList(job.nodes));
  if (request.nodes.empty() && !job.node.empty()) request.nodes.push_back(job.node);
  return request;
}

absl::string_view ShortHost(absl::string_view host) {
  return host.substr(0, host.find('.'));
}

NodeMatch MatchNodes(const std::vector<std::string>& wanted,
                     const std::vector<std::string>& known) {
  const std::set<std::string> names(known.begin(), known.end());
  std::map<std::string, std::string> by_short_name;
  for (const std::string& name : known) by_short_name.emplace(ShortHost(name), name);
  NodeMatch match;
  std::set<std::string> taken;
  for (const std::string& node : wanted) {
    std::string found;
    if (names.contains(node)) {
      found = node;
    } else if (const auto it = by_short_name.find(std::string(ShortHost(node)));
               it != by_short_name.end()) {
      found = it->second;
    }
    if (found.empty()) {
      match.missing.push_back(node);
    } else if (taken.insert(found).second) {
      match.nodes.push_back(std::move(found));
    }
  }
  return match;
}

}  // namespace perfd::daemon
