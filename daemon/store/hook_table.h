// daemon/store/hook_table.h - jobs of schedulers: each run of a job once, with what was decided about it.
//
// Shape    (cluster, job, restart) is the identity of a run; its row is written in one transaction with the counter it was
//          numbered by and the profile it led to. Beyond kMostHookJobs the oldest go; counters stay.
// Errors   writers: call inside a transaction; on an error roll it back. kAlreadyExists: the run is known.
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

namespace perfd {

inline constexpr int64_t kMostHookJobs = 100'000;

// One decision, as it goes into the store.
struct HookAdmission {
  HookRecord record;                     // its id and profile_id are given by the store
  int64_t replaces = 0;                  // an earlier run of the same name that is over; 0: none
  std::string counter;                   // by which it was numbered, when it has a number
  std::optional<ProfileStatus> profile;  // to be created with it
};

// Profiles of jobs that are not over, and those begun since `day_unix_ns` but for those that ended without a sample.
struct HookUse {
  int64_t active = 0;
  int64_t today = 0;
};

// A profile of a job that is not over: how long its ranks are waited for, and whether the job has ended.
struct HookWait {
  std::string profile_id;
  int64_t until_unix_ns = 0;
  bool ended = false;
};

// The record with its id and that of its profile.
absl::StatusOr<HookRecord> AdmitJob(Database& db, const HookAdmission& admission);
absl::Status EndJob(Database& db, int64_t id, int64_t unix_ns);
absl::Status ApplyHookRetention(Database& db, int64_t most = kMostHookJobs);

absl::StatusOr<std::optional<HookRecord>> FindJob(Database& db, const HookJob& job);
// Newest first; of one user when given.
absl::StatusOr<std::vector<HookRecord>> ReadJobs(Database& db, std::optional<uint32_t> uid,
                                                 int32_t limit);
absl::StatusOr<int64_t> ReadHookCounter(Database& db, absl::string_view name);
absl::StatusOr<HookUse> ReadHookUse(Database& db, int64_t day_unix_ns);
absl::StatusOr<std::vector<HookWait>> ReadHookWaits(Database& db);
// Remembered jobs, indexed by HookDecision.
absl::StatusOr<std::vector<uint64_t>> CountJobs(Database& db);

}  // namespace perfd

#endif  // DAEMON_STORE_HOOK_TABLE_H_
