// daemon/store/profile_table.h - profiles, their aggregates, reports and loop results, and when they go.
//
// Errors   writers: call inside a transaction; on an error roll it back.
#ifndef DAEMON_STORE_PROFILE_TABLE_H_
#define DAEMON_STORE_PROFILE_TABLE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/store/database.h"
#include "daemon/store/records.h"

namespace perfd::daemon {

// Gives the profile its number; `status.id` is ignored. The stored status carries the new id.
// by_site: a scheduler asks for it, not its user.
absl::StatusOr<std::string> InsertProfile(Database& db, ProfileStatus status, bool by_site = false);
absl::Status UpdateProfile(Database& db, const ProfileStatus& status);
absl::Status WriteAggregate(Database& db, int64_t profile, absl::string_view body);
absl::Status WriteFinal(Database& db, const FinalRecord& record);
// Deletes what the policy no longer keeps, at most a few profiles per call, and for their age at most one in
// kAgedShare of all: a clock that is wrong for a while does not empty the store. Returns how many.
absl::StatusOr<int> ApplyRetention(Database& db, const RetentionPolicy& policy,
                                   int64_t now_unix_ns);

absl::StatusOr<ProfileStatus> ReadProfile(Database& db, int64_t profile);
absl::StatusOr<ProfileHolder> ReadHolder(Database& db, int64_t profile);
absl::StatusOr<std::vector<ProfileStatus>> ReadProfiles(Database& db, const ProfileQuery& query);
// Ids that begin with `prefix`, at most two: enough to see that it is not unique.
absl::StatusOr<std::vector<std::string>> FindProfiles(Database& db, absl::string_view prefix,
                                                      std::optional<uint32_t> uid);
absl::StatusOr<std::string> ReadAggregate(Database& db, int64_t profile);  // empty: none
absl::StatusOr<std::string> ReadReport(Database& db, int64_t profile);     // kNotFound: none
absl::StatusOr<Report> DecodeReport(int64_t profile, const std::string& body);
absl::StatusOr<std::vector<LoopHistory>> ReadLoopHistory(Database& db, absl::string_view location,
                                                         int limit);
// Number of profiles in each state, indexed by ProfileState.
absl::StatusOr<std::vector<uint64_t>> CountStates(Database& db);
absl::StatusOr<BytesByHolder> SumBytes(Database& db);
// Bytes in use, free pages not counted.
absl::StatusOr<int64_t> UsedBytes(Database& db);

}  // namespace perfd::daemon

#endif  // DAEMON_STORE_PROFILE_TABLE_H_
