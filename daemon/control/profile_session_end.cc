// How a profile ends: deadlines, who is still awaited, and whether the result is whole.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/control/profile_session.h"
#include "daemon/control/target_text.h"

namespace perfd::daemon {

using Phase = NodeProgress::Phase;

namespace {

constexpr int64_t kProgressSlackNs = 10 * kNsPerSecond;  // two windows may be under way

constexpr size_t kMaxNamed = 8;

// Of its duration; nodes that joined late have less.
constexpr double kWholeTime = 0.95;

int64_t Seconds(int64_t ns) {
  return ns / kNsPerSecond;
}

std::string JoinSome(std::vector<std::string> parts, absl::string_view separator) {
  if (parts.size() > kMaxNamed) {
    const size_t more = parts.size() - kMaxNamed;
    parts.resize(kMaxNamed);
    parts.push_back(absl::StrCat(more, " more"));
  }
  return absl::StrJoin(parts, separator);
}

// Of so long, by what has come in.
double CoveredRatio(const std::vector<NodeSession>& nodes, int64_t whole_ns, int64_t elapsed_ns) {
  if (whole_ns <= 0) return 0;
  int64_t covered = 0;
  int64_t measuring = 0;
  for (const NodeSession& node : nodes) {
    if (node.progress.ranks == 0 && node.progress.windows == 0) continue;
    covered += node.progress.covered_ns;
    ++measuring;
  }
  if (measuring == 0) return 0;
  const int64_t mean = covered / measuring;
  const int64_t done = std::max(mean, std::min(elapsed_ns, mean + kProgressSlackNs));
  return std::clamp(static_cast<double>(done) / static_cast<double>(whole_ns), 0.0, 1.0);
}

// Of a profile that nobody ended.
EndReason EndByItself(const ProfileStatus& status, const std::vector<NodeSession>& nodes,
                      ProfileState outcome) {
  const bool lost =
      std::all_of(nodes.begin(), nodes.end(), [](const NodeSession& node) { return node.lost; });
  if (lost) return EndReason::kNodesLost;
  if (outcome == ProfileState::kFailed || status.spec.dry_run) return EndReason::kNone;
  return CoveredRatio(nodes, status.spec.duration_ns, 0) >= kWholeTime ? EndReason::kTime
                                                                       : EndReason::kRanksEnded;
}

// A process or a node that was asked for and is not (wholly) in the result.
bool MeansMissing(const Notice& notice) {
  if (notice.severity == Notice::Severity::kInfo) return false;
  // A node without a matching process is normal unless the process itself was named.
  if (notice.code == absl::StatusCode::kNotFound && notice.pid == 0) return false;
  if (notice.severity == Notice::Severity::kError) return true;
  switch (notice.code) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
      return notice.pid != 0;
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

}  // namespace

void ProfileSession::GiveUp(NodeSession& node, absl::StatusCode code, const std::string& why,
                            Decisions& out) {
  if (node.connected) out.push_back(StopNode{node.progress.node, status_.id, why});
  node.progress.phase = Phase::kFailed;
  node.ended = false;
  node.lost = true;
  AddNotice({Notice::Severity::kError, code, node.progress.node, 0, why});
}

void ProfileSession::CheckDiscovery(NodeSession& node, Moment now, Decisions& out) {
  if (node.ended || now.monotonic_ns - node.asked_ns < limits_.discovery_ns) return;
  const std::string& name = node.progress.node;
  if (node.progress.phase == Phase::kAsked && node.connected && HadEnded(node)) {
    node.ended = true;
    node.progress.phase = Phase::kFinished;
  } else if (node.progress.phase == Phase::kAsked && node.connected) {
    GiveUp(
        node, absl::StatusCode::kDeadlineExceeded,
        absl::StrCat("node ", name, " did not answer within ", Seconds(limits_.discovery_ns), " s"),
        out);
  } else if (node.progress.phase == Phase::kDiscovering && node.progress.ranks == 0 &&
             !StillWaits(node, now)) {
    out.push_back(StopNode{name, status_.id, "no matching process was found in time"});
    node.ended = true;
    if (!wait_until_ns_.has_value())
      AddNotice({Notice::Severity::kInfo, absl::StatusCode::kDeadlineExceeded, name, 0,
                 absl::StrCat("had not said what it found within ", Seconds(limits_.discovery_ns),
                              " s, as a very busy node may")});
    node.progress.phase = Phase::kFinished;
  }
}

void ProfileSession::CheckDeadlines(Moment now, Decisions& out) {
  for (NodeSession& node : nodes_) {
    if (node.Over()) continue;
    const std::string& name = node.progress.node;
    if (now.monotonic_ns >= deadline_ns_) {
      GiveUp(node, absl::StatusCode::kDeadlineExceeded,
             absl::StrCat("node ", name, " did not finish in time; its data until then is kept"),
             out);
    } else if (!node.connected && now.monotonic_ns - node.away_since_ns >= limits_.away_ns) {
      GiveUp(node, absl::StatusCode::kUnavailable,
             absl::StrCat("the agent of node ", name, " did not come back within ",
                          Seconds(limits_.away_ns), " s; its data until then is kept"),
             out);
    } else if (!cancelled_ns_.has_value()) {
      CheckDiscovery(node, now, out);
    }
  }
}

void ProfileSession::Evaluate(Moment now, Decisions& out) {
  if (outcome_.has_value() || final()) return;
  const bool all_over = std::all_of(nodes_.begin(), nodes_.end(),
                                    [](const NodeSession& node) { return node.Over(); });
  if (cancelled_ns_.has_value()) {
    const bool nobody_left = std::all_of(nodes_.begin(), nodes_.end(), [](const NodeSession& node) {
      return node.Over() || !node.connected;
    });
    if (nobody_left || now.monotonic_ns - *cancelled_ns_ >= limits_.cancel_ns) {
      Finish(ProfileState::kCancelled, now, out);
    }
    return;
  }
  if (all_over) {
    Finish(Outcome(), now, out);
    return;
  }
  // Nobody samples any more, but windows are still under way.
  const bool all_ended = std::all_of(nodes_.begin(), nodes_.end(), [](const NodeSession& node) {
    return node.ended || node.Failed() || node.progress.phase == Phase::kAnalyzing;
  });
  if (all_ended && status_.state == ProfileState::kSampling) Go(ProfileState::kAnalyzing, out);
}

ProfileState ProfileSession::Outcome() {
  RecordMissingWindows();
  uint64_t windows = 0;
  for (const NodeSession& node : nodes_) windows += node.progress.windows;
  if (windows == 0) {
    RecordNothingFound();
    return ProfileState::kFailed;
  }
  if (status_.samples == 0) {
    AddNotice({Notice::Severity::kWarning, absl::StatusCode::kOk, "", 0,
               "no samples: no thread of the ranks ran long enough on a CPU to be seen"});
  }
  return LooksPartial() ? ProfileState::kPartial : ProfileState::kDone;
}

void ProfileSession::Finish(ProfileState outcome, Moment now, Decisions& out) {
  const bool measured = outcome == ProfileState::kDone || outcome == ProfileState::kPartial;
  if (measured) Go(ProfileState::kAnalyzing, out);
  if (!CanGo(status_.state, outcome)) return;
  CopyNodes(status_);
  outcome_ = status_;
  outcome_->state = outcome;
  outcome_->finished_unix_ns = now.unix_ns;
  outcome_->course.loops.left_ns = 0;
  EndReason& end = outcome_->course.end;
  if (outcome == ProfileState::kCancelled) end = EndReason::kCancelled;
  if (end == EndReason::kNone) end = EndByItself(status_, nodes_, outcome);
  outcome_->course.progress_ratio = measured ? 1 : Progress(now);
  out.push_back(FinaliseProfile{*outcome_});
}

bool ProfileSession::LooksPartial() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const NodeSession& node) { return node.Failed(); }) ||
         std::any_of(status_.notices.begin(), status_.notices.end(), [this](const Notice& notice) {
           // Processes of a job come and go: who follows it misses nothing when one has ended.
           if (wait_until_ns_.has_value() && notice.code == absl::StatusCode::kNotFound)
             return false;
           return MeansMissing(notice);
         });
}

void ProfileSession::RecordMissingWindows() {
  for (const NodeSession& node : nodes_) {
    if (node.Missing() == 0) continue;
    AddNotice({Notice::Severity::kWarning, absl::StatusCode::kDataLoss, node.progress.node, 0,
               absl::StrCat("up to ", node.Missing(), " windows of node ", node.progress.node,
                            " never arrived (its spool was full or was lost)")});
  }
}

void ProfileSession::RecordNothingFound() {
  const bool nowhere = std::all_of(nodes_.begin(), nodes_.end(),
                                   [](const NodeSession& node) { return node.FoundNothing(); });
  if (nowhere) {
    AddNotice({Notice::Severity::kError, absl::StatusCode::kNotFound, "", 0, NothingFoundText()});
    return;
  }
  const bool explained =
      std::any_of(status_.notices.begin(), status_.notices.end(),
                  [](const Notice& notice) { return notice.severity == Notice::Severity::kError; });
  if (explained) return;
  AddNotice({Notice::Severity::kError, absl::StatusCode::kUnavailable, "", 0,
             "nothing was measured: the ranks ended before the first window"});
}

// Where it was looked for; and, of nodes that found something they may not measure, what they said.
std::string ProfileSession::NothingFoundText() const {
  std::vector<std::string> refusals;
  bool busy = false;
  for (const Notice& notice : status_.notices) {
    const bool late = notice.code == absl::StatusCode::kDeadlineExceeded;
    busy |= late;
    if (notice.severity == Notice::Severity::kInfo &&
        (late || notice.code == absl::StatusCode::kNotFound))
      refusals.push_back(notice.node.empty() ? notice.text
                                             : absl::StrCat(notice.node, ": ", notice.text));
  }
  std::vector<std::string> names;
  for (const NodeSession& node : nodes_) names.push_back(node.progress.node);
  const std::string where = JoinSome(std::move(names), ", ");
  const std::string target = TargetText(status_.spec, status_.requester, job_name_);
  const bool job_over = std::any_of(nodes_.begin(), nodes_.end(),
                                    [](const NodeSession& node) { return node.job_over; });
  std::string text = absl::StrCat("no process matches ", target, " on ", where);
  if (job_over) {
    text = absl::StrCat(target, " ended before a process of it was seen on ", where);
  } else if (wait_until_ns_.has_value()) {
    text = absl::StrCat("no process of ", target, " appeared on ", where, " in time");
  } else if (busy) {
    text = absl::StrCat("whether a process matches ", target, " is not known; submit it again");
  }
  if (!refusals.empty()) absl::StrAppend(&text, " (", JoinSome(refusals, "; "), ")");
  return text;
}

int64_t ProfileSession::MostLeftNs(Moment now) const {
  if (first_sample_ns_ == 0) return SpanNs();
  return std::max<int64_t>(0, first_sample_ns_ + SpanNs() - now.monotonic_ns);
}

double ProfileSession::Progress(Moment now) const {
  // What a dry run does after the look takes no time that could be told beforehand.
  const int64_t whole = status_.spec.dry_run ? DiscoveryNs() : status_.spec.duration_ns;
  const int64_t elapsed = first_sample_ns_ == 0 ? 0 : now.monotonic_ns - first_sample_ns_;
  const double covered = CoveredRatio(nodes_, whole, elapsed);
  if (!status_.spec.until_known || status_.spec.dry_run) return covered;
  return std::max(covered, std::clamp(known_.DoneRatio(now.monotonic_ns), 0.0, 1.0));
}

}  // namespace perfd::daemon
