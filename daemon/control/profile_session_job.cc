// A profile that follows a job of a scheduler: it waits for the job's ranks, and ends with the job.
#include <algorithm>

#include "daemon/control/profile_session.h"

namespace perfd {
namespace {

// Prologs know a node by its short name or by its full one.
bool SameHost(const std::string& a, const std::string& b) {
  return a == b || a.substr(0, a.find('.')) == b.substr(0, b.find('.'));
}

}  // namespace

void ProfileSession::FollowJob(int64_t wait_ns, Moment now) {
  wait_until_ns_ = now.monotonic_ns + std::max<int64_t>(0, wait_ns);
  deadline_ns_ =
      std::max(deadline_ns_, *wait_until_ns_ + SpanNs() + limits_.overrun_ns + limits_.away_ns);
}

bool ProfileSession::StillWaits(const NodeSession& node, Moment now) const {
  return wait_until_ns_.has_value() && !node.job_over && now.monotonic_ns < *wait_until_ns_;
}

Decisions ProfileSession::JobEnded(const std::string& name, Moment now) {
  Decisions out;
  if (final() || outcome_.has_value()) return out;
  for (NodeSession& node : nodes_) {
    if (node.job_over || (!name.empty() && !SameHost(node.progress.node, name))) continue;
    node.job_over = true;
    if (node.Over() || node.ended) continue;
    if (node.progress.phase == NodeProgress::Phase::kDiscovering)
      node.asked_ns = now.monotonic_ns;  // its answer is awaited from now on
    if (node.connected)
      out.push_back(StopNode{node.progress.node, status_.id, "the job has ended"});
  }
  const bool everywhere = std::all_of(nodes_.begin(), nodes_.end(),
                                      [](const NodeSession& node) { return node.job_over; });
  if (everywhere)
    deadline_ns_ = std::min(deadline_ns_, now.monotonic_ns + limits_.overrun_ns + limits_.away_ns);
  Evaluate(now, out);
  return out;
}

}  // namespace perfd
