// A profile that follows a job of a scheduler: it waits for the job's ranks, and ends with the job.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/control/profile_session.h"
#include "daemon/control/target_text.h"

namespace perfd::daemon {
namespace {

// Prologs know a node by its short name or by its full one.
bool SameHost(const std::string& a, const std::string& b) {
  return a == b || a.substr(0, a.find('.')) == b.substr(0, b.find('.'));
}

}  // namespace

void ProfileSession::FollowJob(const FollowedJob& job, Moment now) {
  job_name_ = job.name;
  wait_until_ns_ = now.monotonic_ns + std::max<int64_t>(0, job.wait_ns);
  join_wait_ns_ = std::max<int64_t>({0, job.wait_ns, job.join_wait_ns});
  deadline_ns_ =
      std::max(deadline_ns_, *wait_until_ns_ + SpanNs() + limits_.overrun_ns + limits_.away_ns);
}

bool ProfileSession::StillWaits(const NodeSession& node, Moment now) const {
  return wait_until_ns_.has_value() && !node.job_over &&
         now.monotonic_ns < node.wait_until_ns.value_or(*wait_until_ns_);
}

Decisions ProfileSession::Join(const std::string& name, const AgentFacts* agent, Moment now) {
  Decisions out;
  if (FindNode(name) != nullptr || final() || outcome_.has_value() || cancelled_ns_.has_value())
    return out;
  if (KnowsEnough(status_.course.end)) {
    AddNotice({Notice::Severity::kWarning, absl::StatusCode::kUnavailable, name, 0,
               absl::StrCat("node ", name, " came when the profile was about to end: ",
                            StopText(status_.course.end))});
    return out;
  }
  if (status_.course.end == EndReason::kJobEnded) status_.course.end = EndReason::kNone;
  known_.Restart(now.monotonic_ns);
  NodeSession& node = nodes_.emplace_back();
  node.progress.node = name;
  // Its prolog may come when the others have long been measured.
  if (wait_until_ns_.has_value()) {
    node.wait_until_ns = now.monotonic_ns + join_wait_ns_;
    deadline_ns_ = std::max(deadline_ns_,
                            *node.wait_until_ns + SpanNs() + limits_.overrun_ns + limits_.away_ns);
  }
  if (agent == nullptr) {
    node.Disconnect(now.monotonic_ns);
  } else {
    node.Connect(*agent);
    out.push_back(Ask(node, now));
    if (choice_.ordered()) out.push_back(Order(node));
  }
  // At once: a daemon that is restarted must know whom it asked.
  CopyNodes(status_);
  dirty_ = false;
  out.push_back(SaveProfile{status_});
  return out;
}

Decisions ProfileSession::JobEnded(const std::string& name, Moment now) {
  Decisions out;
  if (final() || outcome_.has_value()) return out;
  // A name that is the same counts before one that begins the same.
  const bool exact = FindNode(name) != nullptr;
  for (NodeSession& node : nodes_) {
    const std::string& own = node.progress.node;
    const bool meant = name.empty() || own == name || (!exact && SameHost(own, name));
    if (node.job_over || !meant) continue;
    node.job_over = true;
    if (node.Over() || node.ended) continue;
    if (node.progress.phase == NodeProgress::Phase::kDiscovering)
      node.asked_ns = now.monotonic_ns;  // its answer is awaited from now on
    if (node.connected)
      out.push_back(StopNode{node.progress.node, status_.id, StopText(status_.course.end)});
  }
  const bool everywhere = std::all_of(nodes_.begin(), nodes_.end(),
                                      [](const NodeSession& node) { return node.job_over; });
  if (everywhere && status_.course.end == EndReason::kNone)
    status_.course.end = EndReason::kJobEnded;
  if (everywhere)
    deadline_ns_ = std::min(deadline_ns_, now.monotonic_ns + limits_.overrun_ns + limits_.away_ns);
  Evaluate(now, out);
  return out;
}

}  // namespace perfd::daemon
