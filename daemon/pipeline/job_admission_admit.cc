// Deciding about one run of a job, and writing that down: together with its profile, or not at all.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/hosts/host_list.h"
#include "daemon/pipeline/hook_words.h"
#include "daemon/pipeline/job_admission.h"
#include "daemon/policy/decide.h"
#include "daemon/policy/job_request.h"

namespace perfd::daemon {

// Set on the store's writer thread, which must not wait; read by Tick.
class JobAdmission::LateOutcome {
 public:
  void Set(const absl::StatusOr<HookRecord>& record) {
    MutexLock lock(&mutex_);
    record_ = record;
  }
  std::optional<absl::StatusOr<HookRecord>> Get() {
    MutexLock lock(&mutex_);
    return record_;
  }

 private:
  Mutex mutex_;
  std::optional<absl::StatusOr<HookRecord>> record_ ABSL_GUARDED_BY(mutex_);
};

// A profile that is still on its way into the store takes its place already. One that gets there meanwhile counts twice
// rather than not at all.
absl::StatusOr<PolicyUse> JobAdmission::Use(const std::string& counter, int64_t now_ns) {
  const int64_t slow =
      std::count_if(slow_.begin(), slow_.end(), [](const SlowAdmission& admission) {
        return admission.planned.has_value() && !admission.outcome->Get().has_value();
      });
  PolicyUse use;
  ASSIGN_OR_RETURN(use.counted, store_.HookCounter(counter));
  ASSIGN_OR_RETURN(const HookUse profiles, store_.HookUseSince(MidnightNs(now_ns)));
  use.active = profiles.active + slow;
  use.today = profiles.today + slow;
  return use;
}

JobAdmission::Result JobAdmission::Admit(const HookCaller& caller, const HookJob& job,
                                         const Policy& policy, int64_t replaces) {
  const int64_t now_ns = clock_.UnixNs();
  HookAdmission admission;
  admission.node = NodeOf(caller, job);
  admission.replaces = replaces;
  admission.counter = CounterOf(policy, job);
  ASSIGN_OR_RETURN(const PolicyUse use, Use(admission.counter, now_ns));
  PolicyChoice choice = Decide(policy, job, use);
  HookRecord& record = admission.record;
  record.job = job;
  record.job.nodes.clear();
  record.job.node.clear();
  record.answer = std::move(choice.answer);
  record.number = choice.number;
  record.seen_unix_ns = now_ns;
  record.wait_ns = policy.wait_ns;
  SlowAdmission slow{std::make_shared<LateOutcome>(), caller, job, std::nullopt, policy.wait_ns};
  if (record.answer.decision == HookDecision::kProfile)
    slow.planned = Plan(caller, job, policy.presets.at(choice.preset), &record.answer);
  if (slow.planned.has_value()) admission.profile = slow.planned->status;
  const absl::StatusOr<HookRecord> stored = store_.AdmitHookJob(
      std::move(admission),
      [outcome = slow.outcome](const absl::StatusOr<HookRecord>& late) { outcome->Set(late); });
  if (stored.ok()) {
    TakeUp(std::move(slow), *stored);
    return stored->answer;
  }
  if (absl::IsDeadlineExceeded(stored.status())) slow_.push_back(std::move(slow));
  return stored.status();
}

void JobAdmission::TakeUp(SlowAdmission admission, const HookRecord& stored) {
  const HookJob& job = admission.job;
  const HookAnswer& answer = stored.answer;
  LogInfo("{} of {} (uid {}), told by {}: {}: {}", JobText(job), job.user, job.uid,
          CallerText(admission.caller),
          answer.profile_id.empty() ? HookDecisionName(answer.decision) : answer.profile_id,
          answer.reason);
  if (admission.planned.has_value()) {
    admission.planned->status.id = answer.profile_id;
    ports_.add(*std::move(admission.planned), FollowedJob{JobText(job), admission.wait_ns});
  }
  HookRun run;
  run.record = stored;
  for (const LateCall& call : admission.calls) {
    const absl::Status status = call.begins ? Repeat(call.caller, call.job, run).status()
                                            : EndRun(call.caller, call.job, stored, call.unix_ns);
    if (!status.ok())
      LogWarning("what {} said is not stored: {}", CallerText(call.caller), Text(status));
  }
}

JobAdmission::SlowAdmission* JobAdmission::FindSlow(const HookJob& job) {
  for (SlowAdmission& slow : slow_) {
    if (slow.job.cluster == job.cluster && slow.job.job == job.job &&
        slow.job.restart == job.restart)
      return &slow;
  }
  return nullptr;
}

absl::Status JobAdmission::Remember(SlowAdmission& slow, LateCall call) {
  if (slow.calls.size() >= kMostLateCalls)
    return absl::ResourceExhaustedError(
        absl::StrCat(JobText(call.job), " is still being decided about, and too many calls wait"));
  call.job.nodes.clear();
  slow.calls.push_back(std::move(call));
  return absl::OkStatus();
}

// Who decides takes up what is ready as well: the clockwork need not wait for a commit.
void JobAdmission::Tick() {
  if (!mutex_.TryLock()) return;
  TakeUpReady();
  mutex_.Unlock();
}

// Without this the store would have a profile, and the quota count it, that nobody works on until perfd is restarted.
void JobAdmission::TakeUpReady() {
  std::vector<std::pair<SlowAdmission, absl::StatusOr<HookRecord>>> ready;
  for (auto it = slow_.begin(); it != slow_.end();) {
    std::optional<absl::StatusOr<HookRecord>> record = it->outcome->Get();
    if (!record.has_value()) {
      ++it;
      continue;
    }
    ready.emplace_back(std::move(*it), *std::move(record));
    it = slow_.erase(it);
  }
  for (auto& [slow, record] : ready) {
    if (!record.ok()) continue;
    CountDecision(record->answer.decision);
    TakeUp(std::move(slow), *record);
  }
}

std::string JobAdmission::KnownName(const std::string& node) const {
  const NodeMatch match = MatchNodes({node}, ports_.nodes());
  return match.nodes.empty() ? node : match.nodes.front();
}

// None: the answer says why there can be none.
std::optional<PlannedProfile> JobAdmission::Plan(const HookCaller& caller, const HookJob& job,
                                                 const ProfileSpec& preset, HookAnswer* answer) {
  const auto give_up = [&](absl::string_view why) -> std::optional<PlannedProfile> {
    *answer = {HookDecision::kUnavailable, absl::StrCat(answer->reason, ", but ", why), ""};
    return std::nullopt;
  };
  absl::StatusOr<JobRequest> wanted = MakeJobRequest(job, preset);
  if (!wanted.ok()) return give_up(wanted.status().message());
  const bool of_node = !caller.node.empty();
  if (of_node && wanted->nodes.empty()) wanted->nodes = {caller.node};
  NodeMatch match = MatchNodes(wanted->nodes, ports_.nodes());
  if (!wanted->nodes.empty() && match.nodes.empty())
    return give_up(absl::StrCat("no agent is connected on ", SomeHosts(std::move(wanted->nodes))));
  // A certificate speaks for its own node, whatever list comes with it; its agent may be away for a moment.
  if (of_node) match = NodeMatch{{KnownName(caller.node)}, {}};
  SubmitRequest request{wanted->spec, wanted->requester, "", match.nodes, of_node};
  request.by_site = true;
  // Of a root that the kernel vouches for: its processes may have rights that others' must not have.
  request.requester.privileged = job.uid == 0 && !of_node;
  absl::StatusOr<PlannedProfile> planned = ports_.plan(request);
  if (!planned.ok()) return give_up(planned.status().message());
  const auto note = [&](Notice::Severity severity, absl::StatusCode code, std::string text) {
    planned->status.notices.push_back({severity, code, "", 0, std::move(text)});
  };
  note(Notice::Severity::kInfo, absl::StatusCode::kOk,
       absl::StrCat("begun by the scheduler hook", of_node ? " of node " : "", caller.node, " for ",
                    JobText(job), ": ", answer->reason));
  if (of_node && wanted->nodes.size() > 1) {
    note(Notice::Severity::kInfo, absl::StatusCode::kOk,
         absl::StrCat("its job has ", wanted->nodes.size(), " nodes (", SomeHosts(wanted->nodes),
                      "): each is measured from its own call of the hook on"));
  }
  if (!match.missing.empty()) {
    note(Notice::Severity::kError, absl::StatusCode::kUnavailable,
         absl::StrCat("no agent was connected on ", SomeHosts(std::move(match.missing)),
                      " when the job began: its ranks there are not measured"));
  }
  return *std::move(planned);
}

}  // namespace perfd::daemon
