#include "daemon/pipeline/job_admission.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/hosts/host_list.h"
#include "daemon/pipeline/hook_words.h"
#include "daemon/policy/decide.h"
#include "daemon/policy/job_request.h"
#include "daemon/policy/policy_source.h"

namespace perfd::daemon {
namespace {

constexpr int kTries = 3;

// Slurm tells how often a job was restarted.
bool CountsRestarts(const HookJob& job) {
  return job.scheduler == "Slurm";
}

// Whether a call that begins the job is of another run than the one that is known by its name.
bool IsAnother(const HookRun& known, const HookCaller& caller, const HookJob& job, int64_t now_ns) {
  const HookRecord& record = known.record;
  // As it was said first: who calls now may leave the scheduler out.
  const bool counted = CountsRestarts(record.job.scheduler.empty() ? job : record.job);
  const int64_t same_ns = counted ? JobAdmission::kSameCountedRunNs : JobAdmission::kSameRunNs;
  if (record.ended_unix_ns != 0) return now_ns - record.ended_unix_ns > same_ns;
  // While others have not ended it, the end of one node is its own word only, which must not end theirs.
  if (caller.node.empty()) {
    if (known.part == HookRun::Part::kEnded) return now_ns - known.part_ended_unix_ns > same_ns;
    if (known.nodes_ended_unix_ns != 0) return now_ns - known.nodes_ended_unix_ns > same_ns;
  }
  return now_ns - record.seen_unix_ns > JobAdmission::kLongestRunNs;
}

bool WasOvertaken(const absl::Status& status) {
  return absl::IsAlreadyExists(status) || absl::IsAborted(status);
}

// Who says that the job is somebody else's speaks of another one; root knows whose it is.
bool MeansAnothers(const HookCaller& caller, const HookJob& job, const HookJob& known) {
  if (caller.node.empty() || job.uid == known.uid) return false;
  LogWarning("node {} says that {} is of uid {}, not {}: that changes nothing", caller.node,
             JobText(job), job.uid, known.uid);
  return true;
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
                                                  SomeHosts(std::move(nodes))));
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

JobAdmission::JobAdmission(SqliteStore& store, const Clock& clock, const PolicySource* policy,
                           Ports ports)
    : store_(store), clock_(clock), policy_(policy), ports_(std::move(ports)) {}

JobAdmission::Result JobAdmission::Record(Result answer, HookResult result) {
  if (!answer.ok()) result = ResultOf(answer.status());
  MutexLock lock(&figures_mutex_);
  ++figures_.calls[static_cast<size_t>(result)];
  if (result == HookResult::kDecided) ++figures_.jobs[static_cast<size_t>(answer->decision)];
  return answer;
}

void JobAdmission::CountDecision(HookDecision decision) {
  MutexLock lock(&figures_mutex_);
  ++figures_.jobs[static_cast<size_t>(decision)];
}

HookFigures JobAdmission::figures() const {
  MutexLock lock(&figures_mutex_);
  return figures_;
}

JobAdmission::Result JobAdmission::Begin(const HookCaller& caller, const HookJob& job) {
  HookResult result = HookResult::kDecided;
  Result answer = TryBegin(caller, job, &result);
  return Record(std::move(answer), result);
}

JobAdmission::Result JobAdmission::TryBegin(const HookCaller& caller, const HookJob& job,
                                            HookResult* result) {
  RETURN_IF_ERROR(CheckCaller(caller, job));
  const std::shared_ptr<const Policy> policy = policy_ == nullptr ? nullptr : policy_->Get();
  if (policy == nullptr) {
    *result = HookResult::kNoPolicy;
    const bool broken = policy_ != nullptr && !policy_->error().empty();
    return HookAnswer{
        HookDecision::kNone,
        absl::StrCat("perfd has no policy: ",
                     broken ? "its file is not taken, `hook list` and `doctor` say why"
                            : "start it with --policy FILE"),
        ""};
  }
  MutexLock lock(&mutex_);
  TakeUpReady();
  Result answer = DecideOnce(caller, job, *policy, result);
  // Its number or the run itself was taken by a decision that had been given up and was stored after all: now it is known.
  for (int i = 1; i < kTries && WasOvertaken(answer.status()); ++i)
    answer = DecideOnce(caller, job, *policy, result);
  return answer;
}

JobAdmission::Result JobAdmission::DecideOnce(const HookCaller& caller, const HookJob& job,
                                              const Policy& policy, HookResult* result) {
  ASSIGN_OR_RETURN(const std::optional<HookRun> run, store_.HookRunOf(job, NodeOf(caller, job)));
  *result = HookResult::kDecided;
  const bool another = run.has_value() && IsAnother(*run, caller, job, clock_.UnixNs());
  if (SlowAdmission* slow = FindSlow(job); slow != nullptr) {
    if (!MeansAnothers(caller, job, slow->job))
      RETURN_IF_ERROR(Remember(*slow, {caller, job, true, clock_.UnixNs()}));
    if (!run.has_value() || another)
      return absl::DeadlineExceededError(
          absl::StrCat(JobText(job), " is still being decided about"));
  }
  if (!run.has_value()) return Admit(caller, job, policy, 0);
  if (another) {
    // Else it would go on with the new run's ranks.
    const std::string& earlier = run->record.answer.profile_id;
    if (!earlier.empty()) ports_.job_ended(earlier, "");
    return Admit(caller, job, policy, run->record.id);
  }
  *result = HookResult::kRepeated;
  return Repeat(caller, job, *run);
}

// The answer is there; what is new is where the job runs.
JobAdmission::Result JobAdmission::Repeat(const HookCaller& caller, const HookJob& job,
                                          const HookRun& run) {
  const HookRecord& record = run.record;
  if (MeansAnothers(caller, job, record.job)) return record.answer;
  const std::string& node = NodeOf(caller, job);
  // A scheduler that says it late, for no node in particular, does not begin anew what is over.
  const bool over = node.empty() && record.ended_unix_ns != 0;
  if (!over && run.part != HookRun::Part::kBegun) {
    const absl::Status begun = store_.BeginHookJob(record.id, node);
    if (!begun.ok())
      LogWarning("that {} began {} is not stored: {}", node, JobText(job), Text(begun));
  }
  if (caller.node.empty() || record.answer.profile_id.empty()) return record.answer;
  if (ports_.join(record.answer.profile_id, KnownName(caller.node))) {
    LogInfo("{}: node {} is added: it runs {}", record.answer.profile_id, caller.node,
            JobText(job));
  }
  return record.answer;
}

JobAdmission::Result JobAdmission::End(const HookCaller& caller, const HookJob& job) {
  HookResult result = HookResult::kEnded;
  Result answer = TryEnd(caller, job, &result);
  return Record(std::move(answer), result);
}

JobAdmission::Result JobAdmission::TryEnd(const HookCaller& caller, const HookJob& job,
                                          HookResult* result) {
  RETURN_IF_ERROR(CheckCaller(caller, job));
  const std::string& node = NodeOf(caller, job);
  MutexLock lock(&mutex_);
  TakeUpReady();
  ASSIGN_OR_RETURN(const std::optional<HookRun> run, FindEnding(job, node));
  SlowAdmission* slow = FindSlow(job);
  const bool of_earlier =
      run.has_value() && run->record.job.restart != job.restart && run->record.ended_unix_ns == 0;
  if (slow != nullptr && !of_earlier && !MeansAnothers(caller, job, slow->job)) {
    RETURN_IF_ERROR(Remember(*slow, {caller, job, false, clock_.UnixNs()}));
    return HookAnswer{HookDecision::kNone, "it is still being decided about", ""};
  }
  if (!run.has_value() || MeansAnothers(caller, job, run->record.job)) {
    *result = HookResult::kUnknown;
    return HookAnswer{HookDecision::kNone, "nothing was decided about this job", ""};
  }
  RETURN_IF_ERROR(EndRun(caller, job, run->record, clock_.UnixNs()));
  return run->record.answer;
}

absl::Status JobAdmission::EndRun(const HookCaller& caller, const HookJob& job,
                                  const HookRecord& record, int64_t unix_ns) {
  const std::string& node = NodeOf(caller, job);
  const std::string& profile = record.answer.profile_id;
  if (!profile.empty()) ports_.job_ended(profile, node);
  return store_.EndHookJob(record.id, node, unix_ns, !caller.node.empty());
}

// The Epilog of a run that Slurm requeues bears the number of the next run already, which may have begun elsewhere.
absl::StatusOr<std::optional<HookRun>> JobAdmission::FindEnding(const HookJob& job,
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

absl::StatusOr<HookOverview> JobAdmission::List(const Requester& requester, int32_t limit) {
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

}  // namespace perfd::daemon
