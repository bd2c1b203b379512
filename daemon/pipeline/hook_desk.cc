#include "daemon/pipeline/hook_desk.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "daemon/policy/decide.h"
#include "daemon/policy/hostlist.h"
#include "daemon/policy/job_request.h"
#include "daemon/policy/policy_source.h"

namespace perfd {
namespace {

constexpr size_t kMaxNamed = 8;

std::string Some(std::vector<std::string> names) {
  const size_t more = names.size() > kMaxNamed ? names.size() - kMaxNamed : 0;
  names.resize(names.size() - more);
  return absl::StrCat(absl::StrJoin(names, ", "),
                      more == 0 ? "" : absl::StrCat(" and ", more, " more"));
}

// A node may speak for the jobs that run on it.
absl::Status CheckCaller(const HookCaller& caller, const HookJob& job) {
  if (caller.node.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::vector<std::string> nodes, ExpandHostList(job.nodes));
  if (nodes.empty()) nodes.push_back(job.node.empty() ? caller.node : job.node);
  const bool own = std::any_of(nodes.begin(), nodes.end(), [&](const std::string& node) {
    return ShortHost(node) == ShortHost(caller.node);
  });
  if (own) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("the certificate of node ", caller.node,
                                                  " may not speak for a job on ",
                                                  Some(std::move(nodes))));
}

HookResult ResultOf(const absl::Status& status) {
  const bool refused = absl::IsPermissionDenied(status) || absl::IsInvalidArgument(status);
  return refused ? HookResult::kRefused : HookResult::kFailed;
}

}  // namespace

const char* HookResultName(HookResult result) {
  switch (result) {
    case HookResult::kDecided:
      return "decided";
    case HookResult::kRepeated:
      return "repeated";
    case HookResult::kNoPolicy:
      return "no_policy";
    case HookResult::kEnded:
      return "ended";
    case HookResult::kUnknown:
      return "unknown_job";
    case HookResult::kRefused:
      return "refused";
    case HookResult::kFailed:
      return "failed";
  }
  return "unknown";
}

HookDesk::HookDesk(SqliteStore& store, const Clock& clock, const PolicySource* policy, Ports ports)
    : store_(store), clock_(clock), policy_(policy), ports_(std::move(ports)) {}

HookDesk::Result HookDesk::Note(Result answer, HookResult result) {
  if (!answer.ok()) result = ResultOf(answer.status());
  absl::MutexLock lock(&figures_mutex_);
  ++figures_.calls[static_cast<size_t>(result)];
  if (result == HookResult::kDecided) ++figures_.jobs[static_cast<size_t>(answer->decision)];
  return answer;
}

HookFigures HookDesk::figures() const {
  absl::MutexLock lock(&figures_mutex_);
  return figures_;
}

HookDesk::Result HookDesk::Begin(const HookCaller& caller, const HookJob& job) {
  HookResult result = HookResult::kDecided;
  Result answer = TryBegin(caller, job, &result);
  return Note(std::move(answer), result);
}

HookDesk::Result HookDesk::TryBegin(const HookCaller& caller, const HookJob& job,
                                    HookResult* result) {
  RETURN_IF_ERROR(CheckCaller(caller, job));
  const std::shared_ptr<const Policy> policy = policy_ == nullptr ? nullptr : policy_->Get();
  if (policy == nullptr) {
    *result = HookResult::kNoPolicy;
    return HookAnswer{HookDecision::kNone, "perfd has no policy: start it with --policy FILE", ""};
  }
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const std::optional<HookRecord> known, store_.HookJobOf(job));
  int64_t replaces = 0;
  if (known.has_value()) {
    const bool over =
        known->ended_unix_ns != 0 && clock_.UnixNs() - known->ended_unix_ns > kSameRunNs;
    *result = HookResult::kRepeated;
    if (!over) return known->answer;
    *result = HookResult::kDecided;
    replaces = known->id;
  }
  return Admit(caller, job, *policy, replaces);
}

HookDesk::Result HookDesk::Admit(const HookCaller& caller, const HookJob& job, const Policy& policy,
                                 int64_t replaces) {
  const int64_t now_ns = clock_.UnixNs();
  HookAdmission admission;
  admission.replaces = replaces;
  admission.counter = CounterOf(policy, job);
  PolicyUse use;
  ASSIGN_OR_RETURN(use.counted, store_.HookCounter(admission.counter));
  ASSIGN_OR_RETURN(const HookUse profiles, store_.HookUseSince(MidnightNs(now_ns)));
  use.active = profiles.active;
  use.today = profiles.today;
  PolicyChoice choice = Decide(policy, job, use);
  HookRecord& record = admission.record;
  record.job = job;
  record.job.nodes.clear();
  record.job.node.clear();
  record.answer = std::move(choice.answer);
  record.number = choice.number;
  record.seen_unix_ns = now_ns;
  record.wait_ns = policy.wait_ns;
  if (record.answer.decision == HookDecision::kProfile)
    Plan(caller, job, policy.presets.at(choice.preset), &admission);
  std::optional<ProfileStatus> planned = admission.profile;
  absl::StatusOr<HookRecord> stored = store_.AdmitHookJob(std::move(admission));
  if (!stored.ok()) {
    if (planned.has_value()) ports_.abandon();
    return stored.status();
  }
  LogInfo("job {} of {} (uid {}): {}: {}", job.job, job.user, job.uid,
          stored->answer.profile_id.empty() ? HookDecisionName(stored->answer.decision)
                                            : stored->answer.profile_id,
          stored->answer.reason);
  if (planned.has_value()) {
    planned->id = stored->answer.profile_id;
    ports_.add(*std::move(planned), policy.wait_ns);
  }
  return stored->answer;
}

// Fills in the profile, or why there can be none.
void HookDesk::Plan(const HookCaller& caller, const HookJob& job, const ProfileSpec& preset,
                    HookAdmission* admission) {
  HookAnswer& answer = admission->record.answer;
  const auto give_up = [&](absl::string_view why) {
    answer = {HookDecision::kUnavailable, absl::StrCat(answer.reason, ", but ", why), ""};
  };
  absl::StatusOr<JobRequest> wanted = MakeJobRequest(job, preset);
  if (!wanted.ok()) return give_up(wanted.status().message());
  // A node that names none speaks for itself, not for all that are connected.
  if (!caller.node.empty() && wanted->nodes.empty()) wanted->nodes = {caller.node};
  NodeMatch match = MatchNodes(wanted->nodes, ports_.nodes());
  if (!wanted->nodes.empty() && match.nodes.empty())
    return give_up(absl::StrCat("no agent is connected on ", Some(std::move(wanted->nodes))));
  SubmitRequest request{wanted->spec, wanted->requester, "", match.nodes};
  // Of a root that the kernel vouches for: its processes may have rights that others' must not have.
  request.requester.privileged = job.uid == 0 && caller.node.empty();
  absl::StatusOr<ProfileStatus> status = ports_.plan(request);
  if (!status.ok()) return give_up(status.status().message());
  status->notices.push_back(
      {Notice::Severity::kInfo, absl::StatusCode::kOk, "", 0,
       absl::StrCat("begun by the scheduler hook for job ", job.job, ": ", answer.reason)});
  if (!match.missing.empty()) {
    status->notices.push_back(
        {Notice::Severity::kError, absl::StatusCode::kUnavailable, "", 0,
         absl::StrCat("no agent was connected on ", Some(std::move(match.missing)),
                      " when the job began: its ranks there are not measured")});
  }
  admission->profile = *std::move(status);
}

HookDesk::Result HookDesk::End(const HookCaller& caller, const HookJob& job) {
  HookResult result = HookResult::kEnded;
  Result answer = TryEnd(caller, job, &result);
  return Note(std::move(answer), result);
}

HookDesk::Result HookDesk::TryEnd(const HookCaller& caller, const HookJob& job,
                                  HookResult* result) {
  RETURN_IF_ERROR(CheckCaller(caller, job));
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(std::optional<HookRecord> known, store_.HookJobOf(job));
  // The Epilog of a run that Slurm requeues bears the number of the next run already.
  if (!known.has_value() && job.restart > 0) {
    HookJob before = job;
    --before.restart;
    ASSIGN_OR_RETURN(known, store_.HookJobOf(before));
  }
  if (!known.has_value()) {
    *result = HookResult::kUnknown;
    return HookAnswer{HookDecision::kNone, "nothing was decided about this job", ""};
  }
  const std::string& node = caller.node.empty() ? job.node : caller.node;
  if (!known->answer.profile_id.empty()) ports_.job_ended(known->answer.profile_id, node);
  RETURN_IF_ERROR(store_.EndHookJob(known->id, clock_.UnixNs()));
  return known->answer;
}

absl::StatusOr<HookOverview> HookDesk::List(const Requester& requester, int32_t limit) {
  const std::optional<uint32_t> uid =
      requester.privileged ? std::nullopt : std::optional<uint32_t>(requester.uid);
  HookOverview overview;
  ASSIGN_OR_RETURN(overview.records,
                   store_.HookJobs(uid, limit == 0 ? 50 : std::clamp(limit, 1, 1000)));
  if (policy_ != nullptr) overview.policy = policy_->Describe();
  if (!requester.privileged) return overview;
  if (policy_ != nullptr) overview.policy_error = policy_->error();
  ASSIGN_OR_RETURN(const std::vector<uint64_t> counts, store_.HookCounts());
  for (size_t i = 0; i < counts.size(); ++i)
    overview.counts.emplace_back(static_cast<HookDecision>(i), counts[i]);
  ASSIGN_OR_RETURN(const HookUse use, store_.HookUseSince(MidnightNs(clock_.UnixNs())));
  overview.active = use.active;
  overview.today = use.today;
  return overview;
}

}  // namespace perfd
