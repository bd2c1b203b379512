// daemon/pipeline/job_admission.h - where prologs and epilogs of schedulers report: one decision per run of a job, for good.
//
// Shape    Begin decides once and begins the profile; every later Begin of the same run gets the same answer. Who has a
//          node's certificate speaks for that node: the profile begins there, and each other node adds itself as it calls.
//          End tells the profile that its job has ended. Both may be repeated by any number of nodes.
//          What the store commits only after its Begin had given up waiting is taken up by the next call or Tick, with
//          the calls of its job that came meanwhile.
// Errors   kPermissionDenied (a node that is not one of the job's), kInvalidArgument (host list), the store's.
// Threads  thread-safe; one Begin or End at a time, each waits for a commit at the longest.
#ifndef DAEMON_PIPELINE_JOB_ADMISSION_H_
#define DAEMON_PIPELINE_JOB_ADMISSION_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/model/hook.h"
#include "core/model/policy.h"
#include "daemon/control/events.h"
#include "daemon/control/planned_profile.h"
#include "daemon/policy/decide.h"
#include "daemon/store/sqlite_store.h"

namespace perfd::daemon {

class PolicySource;

// Who calls, as the service established it: root and administrators, or the agent's certificate of one node.
struct HookCaller {
  std::string node;         // of the certificate; empty: root or an administrator
  std::string person = {};  // who that is, for the log; empty: root
};

enum class HookResult {
  kDecided,   // Begin: this call decided
  kRepeated,  // Begin: it had been decided
  kNoPolicy,
  kEnded,    // End of a known job
  kUnknown,  // End of a job nobody decided about
  kRefused,  // the caller or the request
  kFailed,   // the store
};
inline constexpr int kHookResultCount = 7;
const char* HookResultName(HookResult result);

struct HookFigures {
  std::array<uint64_t, kHookDecisionCount> jobs{};  // decided about since the start
  std::array<uint64_t, kHookResultCount> calls{};
};

class JobAdmission {
 public:
  // A call for a run that is over, or for one that its node has ended, is of another run when that was so long ago.
  static constexpr int64_t kSameRunNs = 60 * kNsPerSecond;
  // The same where the scheduler counts restarts: the same number comes again only when it begins numbering anew.
  static constexpr int64_t kSameCountedRunNs = 24 * 3600 * kNsPerSecond;
  // Calls of a job that is still on its way into the store: each of 16384 nodes begins and ends it.
  static constexpr size_t kMostLateCalls = 32768;
  // Ends may get lost: no run is so long.
  static constexpr int64_t kLongestRunNs = 30 * kSameCountedRunNs;

  // What the spine does for it.
  struct Ports {
    std::function<absl::StatusOr<PlannedProfile>(const SubmitRequest& request)> plan;
    std::function<void(PlannedProfile planned, const FollowedJob& job)> add;
    // Whether the node was not one of it yet.
    std::function<bool(const std::string& profile_id, const std::string& node)> join;
    std::function<void(const std::string& profile_id, const std::string& node)> job_ended;
    std::function<std::vector<std::string>()> nodes;  // with a connected agent
    std::function<void(double seconds)> took;         // may be empty
  };

  // `policy` outlives it; null: there is none.
  JobAdmission(SqliteStore& store, const Clock& clock, const PolicySource* policy, Ports ports);

  absl::StatusOr<HookAnswer> Begin(const HookCaller& caller, const HookJob& job);
  absl::StatusOr<HookAnswer> End(const HookCaller& caller, const HookJob& job);
  absl::StatusOr<HookOverview> List(const Requester& requester, int32_t limit);
  void Tick();
  HookFigures figures() const;
  // How long the service took over a call.
  void Took(double seconds) const {
    if (ports_.took) ports_.took(seconds);
  }

 private:
  using Result = absl::StatusOr<HookAnswer>;
  // What came of an admission that took longer than its Begin waited.
  class LateOutcome;
  struct LateCall {
    HookCaller caller;
    HookJob job;
    bool begins = false;
    int64_t unix_ns = 0;
  };
  struct SlowAdmission {
    std::shared_ptr<LateOutcome> outcome;
    HookCaller caller;
    HookJob job;
    std::optional<PlannedProfile> planned;
    int64_t wait_ns = 0;
    std::vector<LateCall> calls = {};  // of the same job, meanwhile
  };

  Result TryBegin(const HookCaller& caller, const HookJob& job, HookResult* result);
  Result DecideOnce(const HookCaller& caller, const HookJob& job, const Policy& policy,
                    HookResult* result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Result Repeat(const HookCaller& caller, const HookJob& job, const HookRun& run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Result TryEnd(const HookCaller& caller, const HookJob& job, HookResult* result);
  absl::Status EndRun(const HookCaller& caller, const HookJob& job, const HookRecord& record,
                      int64_t unix_ns);
  absl::StatusOr<std::optional<HookRun>> FindEnding(const HookJob& job, const std::string& node);
  Result Admit(const HookCaller& caller, const HookJob& job, const Policy& policy, int64_t replaces)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<PolicyUse> Use(const std::string& counter, int64_t now_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeUp(SlowAdmission admission, const HookRecord& stored)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeUpReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  SlowAdmission* FindSlow(const HookJob& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Remember(SlowAdmission& slow, LateCall call);
  std::string KnownName(const std::string& node) const;
  std::optional<PlannedProfile> Plan(const HookCaller& caller, const HookJob& job,
                                     const ProfileSpec& preset, HookAnswer* answer);
  Result Record(Result answer, HookResult result);
  void CountDecision(HookDecision decision);

  SqliteStore& store_;
  const Clock& clock_;
  const PolicySource* const policy_;
  const Ports ports_;

  Mutex mutex_;  // held while one job is decided about, also over its commit
  std::vector<SlowAdmission> slow_ ABSL_GUARDED_BY(mutex_);
  mutable Mutex figures_mutex_;
  HookFigures figures_ ABSL_GUARDED_BY(figures_mutex_);
};

}  // namespace perfd::daemon

#endif  // DAEMON_PIPELINE_JOB_ADMISSION_H_
