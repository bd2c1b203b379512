#include "daemon/control/profile_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/model/variant_name.h"
#include "daemon/control/target_text.h"

namespace perfd::daemon {

using Phase = NodeProgress::Phase;

ProfileSession::ProfileSession(ProfileStatus status, const ControlLimits& limits, Moment now)
    : status_(std::move(status)),
      limits_(limits),
      begin_ns_(now.monotonic_ns),
      known_(LimitsFor(status_.spec.budget)) {
  for (const NodeProgress& progress : status_.nodes) {
    NodeSession node;
    node.progress = progress;
    nodes_.push_back(node);
  }
  deadline_ns_ = begin_ns_ + SpanNs() + limits_.overrun_ns + limits_.away_ns;
}

Decisions ProfileSession::Start(Moment now) {
  Decisions out;
  Go(ProfileState::kDiscovering, out);
  for (NodeSession& node : nodes_) {
    node.connected = true;
    out.push_back(Ask(node, now));
  }
  return out;
}

void ProfileSession::Restore(Moment now) {
  restored_ns_ = now.monotonic_ns;
  // The monotonic clock may have started anew: what has passed is taken from the wall clock, within its bounds.
  const int64_t passed = std::clamp<int64_t>(now.unix_ns - status_.submitted_unix_ns, 0, SpanNs());
  begin_ns_ = now.monotonic_ns - passed;
  deadline_ns_ = now.monotonic_ns + (SpanNs() - passed) + limits_.overrun_ns + limits_.away_ns;
  if (status_.started_unix_ns != 0) {
    first_sample_ns_ =
        now.monotonic_ns - std::clamp<int64_t>(now.unix_ns - status_.started_unix_ns, 0, passed);
  }
  for (NodeSession& node : nodes_) {
    // The stored phase tells whether the node had ended, but not whether its last windows came: the agent knows.
    node.ended_before = node.progress.phase == Phase::kFinished;
    node.job_over = KnowsEnough(status_.course.end) || status_.course.end == EndReason::kJobEnded;
    if (node.progress.phase != Phase::kFailed) node.progress.phase = Phase::kAsked;
    node.Disconnect(now.monotonic_ns);
  }
}

StartNode ProfileSession::Ask(NodeSession& node, Moment now) {
  node.progress.phase = Phase::kAsked;
  node.asked_ns = now.monotonic_ns;
  StartNode start{node.progress.node, status_.id, status_.spec, status_.requester, Remaining(node)};
  if (wait_until_ns_.has_value())
    start.wait_ns =
        std::max(kNsPerSecond, node.wait_until_ns.value_or(*wait_until_ns_) - now.monotonic_ns);
  return start;
}

// It ended while nobody listened: it had said so, or its time is over.
bool ProfileSession::HadEnded(const NodeSession& node) const {
  return node.ended_before || node.job_over ||
         (node.progress.windows > 0 && Remaining(node) < kNsPerSecond);
}

int64_t ProfileSession::DiscoveryNs() const {
  return std::min(limits_.look_ns, status_.spec.duration_ns / 4);
}

int64_t ProfileSession::SpanNs() const {
  return status_.spec.dry_run ? DiscoveryNs() + limits_.dry_run_ns : status_.spec.duration_ns;
}

int64_t ProfileSession::Remaining(const NodeSession& node) const {
  return std::max<int64_t>(0, SpanNs() - node.progress.covered_ns);
}

Decisions ProfileSession::Connected(const AgentFacts& facts, Moment now) {
  Decisions out;
  NodeSession* node = FindNode(facts.node);
  if (node == nullptr || final() || outcome_.has_value()) return out;
  node->Connect(facts);
  if (cancelled_ns_.has_value()) {
    out.push_back(StopNode{facts.node, status_.id, "cancelled"});
  } else if (node->Failed() && !node->lost) {
    return out;
  } else if (!node->ended && HadEnded(*node)) {
    // Nothing is left to ask for: the agent's own news or last windows tell the rest, or its silence does.
    node->progress.phase = Phase::kAsked;
    node->asked_ns = now.monotonic_ns;
    if (node->job_over)
      out.push_back(StopNode{facts.node, status_.id, StopText(status_.course.end)});
  } else if (!node->ended) {
    node->lost = false;
    known_.Restart(now.monotonic_ns);
    out.push_back(Ask(*node, now));
    if (choice_.ordered()) out.push_back(Order(*node));
    if (node->leased && charge_ > 0) out.push_back(ChargeNode{facts.node, status_.id, charge_});
  }
  Evaluate(now, out);
  return out;
}

Decisions ProfileSession::Disconnected(const std::string& name, Moment now) {
  Decisions out;
  NodeSession* node = FindNode(name);
  if (node == nullptr) return out;
  node->Disconnect(now.monotonic_ns);
  Evaluate(now, out);
  return out;
}

Decisions ProfileSession::Update(const std::string& name, const SessionUpdate& update, Moment now) {
  Decisions out;
  NodeSession* node = FindNode(name);
  const bool at_work = update.phase == Phase::kDiscovering || update.phase == Phase::kSampling;
  if (at_work && (node == nullptr || outcome_.has_value() || cancelled_ns_.has_value())) {
    // It missed the end, or was never asked.
    out.push_back(StopNode{name, status_.id, "the profile does not go on"});
  }
  if (node == nullptr && !final())
    AddNotice({Notice::Severity::kWarning, absl::StatusCode::kPermissionDenied, name, 0,
               absl::StrCat("what node ", name,
                            " said of this profile was not believed: it was not asked for it")});
  if (node == nullptr || outcome_.has_value() || final()) return out;
  node->Apply(update);
  for (Notice notice : update.notices) {
    notice.node = name;  // whatever it says: nobody speaks for another node
    AddNotice(std::move(notice));
  }
  dirty_ = true;
  if (update.first_sample) RecordFirstSample(now, now.unix_ns, out);
  Evaluate(now, out);
  return out;
}

Decisions ProfileSession::Stored(const StoredWindow& window, Moment now) {
  Decisions out;
  NodeSession* node = FindNode(window.node);
  if (node == nullptr) return out;  // the pipeline takes none of a node that was not asked
  node->Count(window);
  RecordLeases(window);
  node->asked_ns = now.monotonic_ns;  // a sign of life
  status_.samples += window.samples;
  dirty_ = true;
  if (outcome_.has_value() || final()) return out;
  if (window.samples > 0) RecordFirstSample(now, window.start_unix_ns, out);
  Evaluate(now, out);
  return out;
}

Decisions ProfileSession::Refused(const RefusedWindow& window, Moment now) {
  Decisions out;
  if (outcome_.has_value() || final()) return out;
  AddNotice(window.notice);
  if (NodeSession* node = FindNode(window.node); node != nullptr) node->Pass(window);
  Evaluate(now, out);
  return out;
}

void ProfileSession::RecordFirstSample(Moment now, int64_t started_unix_ns, Decisions& out) {
  if (first_sample_ns_ == 0) {
    first_sample_ns_ = now.monotonic_ns;
    status_.started_unix_ns = started_unix_ns;
    status_.submit_to_first_sample_ns = std::max<int64_t>(1, now.monotonic_ns - begin_ns_);
  }
  if (status_.state < ProfileState::kSampling) Go(ProfileState::kSampling, out);
}

bool ProfileSession::WantsLoops(Moment now) const {
  if (status_.spec.variants.set.empty() || choice_.ordered() || first_sample_ns_ == 0) return false;
  if (outcome_.has_value() || cancelled_ns_.has_value() || status_.state > ProfileState::kInjecting)
    return false;
  if (!KnowsItsNodes(now)) return false;
  return now.monotonic_ns >= std::max(first_sample_ns_ + DiscoveryNs(), choice_.first_ns());
}

Decisions ProfileSession::HotLoops(std::vector<MeasureLoop> loops, Moment now) {
  Decisions out;
  const bool wanted = WantsLoops(now);
  choice_.AskLater(now);
  if (loops.empty() || !wanted) return out;
  choice_.Begin(std::move(loops), now);
  known_.ChangeLoops(now.monotonic_ns);
  GiveLeases(now);
  if (!status_.spec.dry_run) Go(ProfileState::kInjecting, out);
  for (Decision& order : OrderAll()) out.push_back(std::move(order));
  return out;
}

MeasureNode ProfileSession::Order(const NodeSession& node) const {
  MeasureNode out{node.progress.node, {}};
  out.order.profile_id = status_.id;
  out.order.revision = choice_.revision();
  out.order.loops = choice_.loops();
  for (const std::string& text : status_.spec.variants.set) {
    const absl::StatusOr<VariantName> name = ParseVariantName(text);
    if (name.ok()) out.order.variants.push_back(name->Text());
  }
  out.order.repetitions = status_.spec.variants.repetitions;
  out.order.budget = status_.spec.budget;
  out.order.dry_run = status_.spec.dry_run;
  out.order.recovery = status_.spec.variants.recovery();
  Share(node, out.order);
  return out;
}

void ProfileSession::Go(ProfileState state, Decisions& out) {
  if (!CanGo(status_.state, state)) return;
  status_.state = state;
  CopyNodes(status_);
  dirty_ = false;
  out.push_back(SaveProfile{status_});
}

Decisions ProfileSession::Cancel(const std::string& by, Moment now) {
  Decisions out;
  if (cancelled_ns_.has_value()) return out;
  cancelled_ns_ = now.monotonic_ns;
  AddNotice({Notice::Severity::kInfo, absl::StatusCode::kCancelled, "", 0,
             absl::StrCat("cancelled by ", by)});
  for (const NodeSession& node : nodes_) {
    if (node.connected && !node.Over())
      out.push_back(StopNode{node.progress.node, status_.id, "cancelled"});
  }
  Evaluate(now, out);
  return out;
}

Decisions ProfileSession::Tick(Moment now) {
  Decisions out;
  if (final()) return out;
  if (outcome_.has_value()) {
    if (retry_ns_.has_value() && now.monotonic_ns >= *retry_ns_) {
      retry_ns_.reset();
      out.push_back(FinaliseProfile{*outcome_});
    }
    return out;
  }
  CheckDeadlines(now, out);
  CheckKnown(now, out);
  Evaluate(now, out);
  ReportCharge(now, out);
  for (Decision& decision : Save(now)) out.push_back(std::move(decision));
  return out;
}

Decisions ProfileSession::Save(Moment now) {
  Decisions out;
  if (!dirty_ || outcome_.has_value() || now.monotonic_ns - saved_ns_ < limits_.save_ns) return out;
  dirty_ = false;
  saved_ns_ = now.monotonic_ns;
  CopyNodes(status_);
  out.push_back(SaveProfile{status_});
  return out;
}

Decisions ProfileSession::Finalised(bool ok, Moment now) {
  if (!outcome_.has_value()) return {};
  if (!ok) {
    retry_ns_ = now.monotonic_ns + limits_.retry_ns;
    return {};
  }
  status_ = std::move(*outcome_);
  outcome_.reset();
  return {};
}

ProfileStatus ProfileSession::Status(Moment now) const {
  ProfileStatus status = status_;
  if (!final()) {
    CopyNodes(status);
    status.course.progress_ratio = Progress(now);
  }
  return status;
}

NodeSession* ProfileSession::FindNode(const std::string& name) {
  for (NodeSession& node : nodes_) {
    if (node.progress.node == name) return &node;
  }
  return nullptr;
}

void ProfileSession::AddNotice(Notice notice) {
  std::vector<Notice>& notices = status_.notices;
  if (std::find(notices.begin(), notices.end(), notice) != notices.end()) return;
  if (notices.size() + 1 < limits_.notices) {
    notices.push_back(std::move(notice));
  } else if (notices.size() < limits_.notices) {
    notices.push_back({Notice::Severity::kWarning, absl::StatusCode::kResourceExhausted, "", 0,
                       "more notices than can be kept: the rest is only in the agents' logs"});
  }
  dirty_ = true;
}

void ProfileSession::CopyNodes(ProfileStatus& status) const {
  status.nodes.clear();
  for (const NodeSession& node : nodes_) status.nodes.push_back(node.progress);
}

}  // namespace perfd::daemon
