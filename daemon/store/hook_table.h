// daemon/store/hook_table.h - jobs of schedulers: each run of a job once, with what was decided about it.
//
// Shape    (cluster, job, restart) is the identity of a run; its row is written in one transaction with the counter it was
//          numbered by and the profile it led to. A run is over when every node that had begun has ended: until then it has a
//          mark per node, and one with an empty name when it was begun for no node in particular, which no node's end ends.
//          A node may be called by its short or its full name. Beyond kMostHookJobs the oldest go, beyond kMostHookMarks the
//          marks of the oldest; counters stay, and so does what the quota counts and what active profiles wait for.
// Errors   writers: call inside a transaction; on an error roll it back. kAlreadyExists: the run is known.
//          kAborted: its counter has moved since it was numbered.
#ifndef DAEMON_STORE_HOOK_TABLE_H_
#define DAEMON_STORE_HOOK_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/hook.h"
#include "core/model/profile.h"
#include "daemon/store/database.h"

namespace perfd::daemon {

inline constexpr int64_t kMostHookJobs = 100'000;
inline constexpr int64_t kMostHookMarks = 1'000'000;

// One decision, as it goes into the store.
struct HookAdmission {
  HookRecord record;                     // its id and profile_id are given by the store
  std::string node;                      // where it begins; empty: nobody says
  int64_t replaces = 0;                  // an earlier run that had its name; 0: none
  std::string counter;                   // by which it was numbered, when it has a number
  std::optional<ProfileStatus> profile;  // to be created with it
};

// Profiles of jobs that are not over, and those begun since `day_unix_ns` but for those that ended without a sample.
struct HookUse {
  int64_t active = 0;
  int64_t today = 0;
};

// A profile of a job that is not over: how long its ranks are waited for, and where the job has ended.
struct HookWait {
  std::string profile_id;
  HookJob job;  // its name and scheduler
  int64_t until_unix_ns = 0;
  int64_t wait_ns = 0;                   // the same, from when a node calls
  bool ended = false;                    // everywhere
  std::vector<std::string> ended_nodes;  // when not everywhere
};

// A run, and one node's part in it.
struct HookRun {
  HookRecord record;
  enum class Part { kNone, kBegun, kEnded } part = Part::kNone;  // kNone also when the run is over
  int64_t part_ended_unix_ns = 0;                                // with kEnded
  // Asked for no node: the last end, when nodes have ended and none is left that has begun.
  int64_t nodes_ended_unix_ns = 0;
};

// The record with its id and that of its profile.
absl::StatusOr<HookRecord> AdmitJob(Database& db, const HookAdmission& admission);
// A node has begun a known run (again): the run is not over.
absl::Status BeginNode(Database& db, int64_t id, absl::string_view node);
// A node has ended the run, which is over when nobody who had begun it is left. Empty: the job is over everywhere.
// `only_begun`: nothing is written for a node that has not begun it, unless it was begun for nodes that nobody named.
absl::Status EndNode(Database& db, int64_t id, absl::string_view node, int64_t unix_ns,
                     bool only_begun = false);
absl::Status ApplyHookRetention(Database& db, int64_t most_jobs = kMostHookJobs,
                                int64_t most_marks = kMostHookMarks);

absl::StatusOr<std::optional<HookRecord>> FindJob(Database& db, const HookJob& job);
absl::StatusOr<std::optional<HookRun>> FindRun(Database& db, const HookJob& job,
                                               absl::string_view node);
// Newest first; of one user when given.
absl::StatusOr<std::vector<HookRecord>> ReadJobs(Database& db, std::optional<uint32_t> uid,
                                                 int32_t limit);
absl::StatusOr<int64_t> ReadHookCounter(Database& db, absl::string_view name);
absl::StatusOr<HookUse> ReadHookUse(Database& db, int64_t day_unix_ns);
absl::StatusOr<std::vector<HookWait>> ReadHookWaits(Database& db);
// Remembered jobs, indexed by HookDecision.
absl::StatusOr<std::vector<uint64_t>> CountJobs(Database& db);

}  // namespace perfd::daemon

#endif  // DAEMON_STORE_HOOK_TABLE_H_
