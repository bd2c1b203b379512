// What the spine does for the scheduler hook.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/policy/job_request.h"

namespace perfd::daemon {
namespace {

constexpr int64_t kMostWaitNs = 7 * 24 * 3600 * kNsPerSecond;

}  // namespace

JobAdmission::Ports Pipeline::HookPorts() {
  JobAdmission::Ports ports;
  ports.plan = [this](const SubmitRequest& request) -> absl::StatusOr<PlannedProfile> {
    if (!store_.healthy())
      return absl::ResourceExhaustedError(
          absl::StrCat("the daemon's store cannot write: free space in ", store_.directory()));
    MutexLock lock(&mutex_);
    return table_.Plan(request, Now());
  };
  ports.add = [this](PlannedProfile planned, const FollowedJob& job) {
    results_.Begin(planned.status.id, kSite);
    MutexLock lock(&mutex_);
    Execute(table_.Add(std::move(planned), Now(), job));
  };
  ports.join = [this](const std::string& profile_id, const std::string& node) {
    MutexLock lock(&mutex_);
    const Decisions decisions = table_.Join(profile_id, node, Now());
    Execute(decisions);
    return !decisions.empty();
  };
  ports.job_ended = [this](const std::string& profile_id, const std::string& node) {
    MutexLock lock(&mutex_);
    Execute(table_.JobEnded(profile_id, node, Now()));
  };
  ports.nodes = [this] {
    MutexLock lock(&mutex_);
    std::vector<std::string> nodes;
    for (const auto& [name, entry] : registry_.entries()) {
      if (entry.connection != 0) nodes.push_back(name);
    }
    return nodes;
  };
  ports.took = options_.on_hook;
  return ports;
}

// A profile that followed a job goes on following it. An end that came while we were away is not known, so such a profile
// is over when its time is, or that of waiting.
void Pipeline::RestoreOne(ProfileStatus status, const std::vector<HookWait>& waits) {
  const Moment now = Now();
  const std::string id = status.id;
  const auto wait = std::find_if(waits.begin(), waits.end(),
                                 [&](const HookWait& other) { return other.profile_id == id; });
  if (wait == waits.end()) return table_.Restore(std::move(status), now);
  const int64_t wait_ns = std::clamp<int64_t>(wait->until_unix_ns - now.unix_ns, 0, kMostWaitNs);
  const int64_t join_wait_ns = std::clamp<int64_t>(wait->wait_ns, 0, kMostWaitNs);
  table_.Restore(std::move(status), now, FollowedJob{JobText(wait->job), wait_ns, join_wait_ns});
  if (wait->ended) Execute(table_.JobEnded(id, "", now));
  for (const std::string& node : wait->ended_nodes) Execute(table_.JobEnded(id, node, now));
}

}  // namespace perfd::daemon
