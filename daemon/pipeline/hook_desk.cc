#include "daemon/pipeline/hook_desk.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "daemon/pipeline/hook_words.h"
#include "daemon/policy/decide.h"
#include "daemon/policy/hostlist.h"
#include "daemon/policy/job_request.h"
#include "daemon/policy/policy_source.h"

namespace perfd {
namespace {

constexpr int kTries = 3;

// Slurm tells how often a job was restarted.
bool CountsRestarts(const HookJob& job) {
  return job.scheduler == "Slurm";
}

// Whether a call that begins the job is of another run than the one that is known by its name.
bool IsAnother(const HookRun& known, const HookJob& job, int64_t now_ns) {
  const int64_t same_ns = CountsRestarts(job) ? HookDesk::kSameCountedRunNs : HookDesk::kSameRunNs;
  if (known.part == HookRun::Part::kEnded) return now_ns - known.part_ended_unix_ns > same_ns;
  const HookRecord& record = known.record;
  if (record.ended_unix_ns != 0) return now_ns - record.ended_unix_ns > same_ns;
  return now_ns - record.seen_unix_ns > HookDesk::kLongestRunNs;
}

bool WasOvertaken(const absl::Status& status) {
  return absl::IsAlreadyExists(status) || absl::IsAborted(status);
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
                                                  SomeNodes(std::move(nodes))));
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

void HookDesk::CountDecision(HookDecision decision) {
  absl::MutexLock lock(&figures_mutex_);
  ++figures_.jobs[static_cast<size_t>(decision)];
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
  Result answer = DecideOnce(caller, job, *policy, result);
  // Its number or the run itself was taken by a decision that had been given up and was stored after all: now it is known.
  for (int i = 1; i < kTries && WasOvertaken(answer.status()); ++i)
    answer = DecideOnce(caller, job, *policy, result);
  return answer;
}

HookDesk::Result HookDesk::DecideOnce(const HookCaller& caller, const HookJob& job,
                                      const Policy& policy, HookResult* result) {
  ASSIGN_OR_RETURN(const std::optional<HookRun> run, store_.HookRunOf(job, NodeOf(caller, job)));
  *result = HookResult::kDecided;
  if (!run.has_value()) return Admit(caller, job, policy, 0);
  if (IsAnother(*run, job, clock_.UnixNs())) {
    // Else it would go on with the new run's ranks.
    const std::string& earlier = run->record.answer.profile_id;
    if (!earlier.empty()) ports_.job_ended(earlier, "");
    return Admit(caller, job, policy, run->record.id);
  }
  *result = HookResult::kRepeated;
  return Repeat(caller, job, *run);
}

// The answer is there; what is new is where the job runs.
HookDesk::Result HookDesk::Repeat(const HookCaller& caller, const HookJob& job,
                                  const HookRun& run) {
  const HookRecord& record = run.record;
  const std::string& node = NodeOf(caller, job);
  if (!node.empty() && run.part != HookRun::Part::kBegun) {
    const absl::Status begun = store_.BeginHookJob(record.id, node);
    if (!begun.ok())
      LogWarning("that {} began {} is not stored: {}", node, JobText(job), Text(begun));
  }
  if (caller.node.empty() || record.answer.profile_id.empty()) return record.answer;
  if (job.uid != record.job.uid) {
    LogWarning("node {} says that {} is of uid {}, not {}: it is not added to {}", caller.node,
               JobText(job), job.uid, record.job.uid, record.answer.profile_id);
  } else if (ports_.join(record.answer.profile_id, KnownName(caller.node))) {
    LogInfo("{}: node {} is added: it runs {}", record.answer.profile_id, caller.node,
            JobText(job));
  }
  return record.answer;
}

HookDesk::Result HookDesk::End(const HookCaller& caller, const HookJob& job) {
  HookResult result = HookResult::kEnded;
  Result answer = TryEnd(caller, job, &result);
  return Note(std::move(answer), result);
}

HookDesk::Result HookDesk::TryEnd(const HookCaller& caller, const HookJob& job,
                                  HookResult* result) {
  RETURN_IF_ERROR(CheckCaller(caller, job));
  const std::string& node = NodeOf(caller, job);
  absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const std::optional<HookRun> run, FindEnding(job, node));
  if (!run.has_value()) {
    *result = HookResult::kUnknown;
    return HookAnswer{HookDecision::kNone, "nothing was decided about this job", ""};
  }
  const HookAnswer& answer = run->record.answer;
  if (!answer.profile_id.empty()) ports_.job_ended(answer.profile_id, node);
  RETURN_IF_ERROR(store_.EndHookJob(run->record.id, node, clock_.UnixNs()));
  return answer;
}

// The Epilog of a run that Slurm requeues bears the number of the next run already, which may have begun elsewhere.
absl::StatusOr<std::optional<HookRun>> HookDesk::FindEnding(const HookJob& job,
                                                            const std::string& node) {
  ASSIGN_OR_RETURN(std::optional<HookRun> run, store_.HookRunOf(job, node));
  const auto begun = [](const std::optional<HookRun>& known) {
    return known.has_value() && known->part == HookRun::Part::kBegun;
  };
  if (job.restart == 0 || begun(run)) return run;
  HookJob before = job;
  --before.restart;
  ASSIGN_OR_RETURN(std::optional<HookRun> earlier, store_.HookRunOf(before, node));
  return !run.has_value() || begun(earlier) ? earlier : run;
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
