// core/model/hook.h - a job as its batch scheduler describes it, and what perfd decided about it.
//
// Shape    HookJob -> HookAnswer; (cluster, job, restart) is the identity of one run of a job.
// Units    times in ns since the epoch.
#ifndef CORE_MODEL_HOOK_H_
#define CORE_MODEL_HOOK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace perfd {

enum class HookPreference { kNone, kOptIn, kOptOut };

struct HookJob {
  std::string cluster;  // empty: the only one
  std::string job;      // the scheduler's id
  int32_t restart = 0;
  uint32_t uid = 0;
  std::string user;  // empty: not known
  std::string account;
  std::string partition;
  std::string nodes;  // host list, "n[1-4,7],m3"; empty: only `node`
  std::string node;   // the caller's; empty: none in particular
  HookPreference preference = HookPreference::kNone;
  std::string preset;     // with kOptIn, as the user wrote it; empty: the policy's choice
  std::string scheduler;  // for people, "Slurm"; empty: not known

  bool operator==(const HookJob&) const = default;
};

enum class HookDecision {
  kProfile,
  kNotChosen,    // not one of every N
  kOptedOut,     // its user refused
  kNever,        // by a rule
  kQuota,        // it would have been, but for the quota
  kUnavailable,  // it would have been, but cannot be
  kNone,         // nothing was decided: no policy, or not a known job
};
inline constexpr int kHookDecisionCount = 7;

const char* HookDecisionName(HookDecision decision);

struct HookAnswer {
  HookDecision decision = HookDecision::kNone;
  std::string reason;
  std::string profile_id;  // empty: none

  bool operator==(const HookAnswer&) const = default;
};

struct HookRecord {
  int64_t id = 0;  // in the store
  HookJob job;     // without nodes and node
  HookAnswer answer;
  int64_t number = 0;  // among the jobs of which every Nth is profiled; 0: not counted
  int64_t seen_unix_ns = 0;
  int64_t ended_unix_ns = 0;  // every node that had begun has ended; 0: not yet
  int64_t wait_ns = 0;        // how long its ranks are waited for

  bool operator==(const HookRecord&) const = default;
};

struct HookOverview {
  std::vector<HookRecord> records;  // newest first
  std::vector<std::pair<HookDecision, uint64_t>> counts;
  std::string policy;        // for people; empty: none
  std::string policy_error;  // empty: the file was taken
  int64_t active = 0;        // profiles of jobs that are not over
  int64_t today = 0;         // begun since midnight (UTC), without those that saw no process

  bool operator==(const HookOverview&) const = default;
};

// The number by which agents know a job: of "4711" and "4711.server" the digits they begin with; of an element of a job array
// ("4711[3]", "4711[3].server") a hash above 2^31 of "4711[3]", so that each element is a job of its own; of other ids (Flux:
// "f2Lg9kz") a hash of the whole. Nothing: the id is empty or 0.
// Source   PBS job identifiers: qsub(1B), "sequence_number.server_name", "sequence_number[index].server_name"; LSF: bjobs(1),
//          "job_ID[index]". Hash: FNV-1a, 32 bits.
std::optional<uint32_t> JobNumber(absl::string_view job);

}  // namespace perfd

#endif  // CORE_MODEL_HOOK_H_
