// daemon/store/window_table.h - windows and the set of sequences every stream has delivered.
//
// Shape    Append inserts a window exactly once: the set of stored sequences outlives the window itself. Skip puts a
//          sequence into that set without a window: nobody wants it, but it is no gap and is never used again.
//          Replaced windows are gone for every reader at once. Their rows go with Sweep: to delete a gigabyte takes twenty seconds, and
//          nobody else's commit may wait for it.
// Errors   call inside a transaction; on an error roll it back.
#ifndef DAEMON_STORE_WINDOW_TABLE_H_
#define DAEMON_STORE_WINDOW_TABLE_H_

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/store/database.h"
#include "daemon/store/records.h"

namespace perfd::daemon {

inline constexpr uint64_t kMaxSequence = uint64_t{1} << 62;
inline constexpr int64_t kSweepBytes = 4 << 20;
inline constexpr int64_t kMostStreams =
    8192;  // of one sender: beyond it those that began first are forgotten

// `audit_user_bytes`: AuditRetention.
absl::StatusOr<AppendResult> AppendWindow(Database& db, const WindowRecord& record,
                                          int64_t audit_user_bytes);
// Append and Skip: kOutOfRange when the stream has too many gaps.
// kAlreadyExists: the stream is another's. Asked before anything of it is written.
absl::Status CheckOwner(Database& db, const StreamKey& stream);
absl::Status SkipWindow(Database& db, const StreamKey& stream, uint64_t sequence);

// Highest stored or skipped sequence; 0: none.
absl::StatusOr<uint64_t> StoredSequence(Database& db, absl::string_view stream_id);
// Sequences of the stream, between its first and last, that were never seen.
absl::StatusOr<uint64_t> MissingSequences(Database& db, absl::string_view stream_id);
// Empty: nobody's yet.
absl::StatusOr<std::string> StreamOwner(Database& db, absl::string_view stream_id);
// The highest row id any window ever had.
absl::StatusOr<int64_t> LastRowId(Database& db);

// How many windows there are, by profile: those that its aggregate does not contain.
absl::StatusOr<std::map<std::string, uint64_t>> CountWindows(Database& db);
// Windows of a profile in the order of commits.
absl::Status ForEachWindow(
    Database& db, int64_t profile,
    const std::function<absl::Status(int64_t row_id, const std::string& body)>& visit);

// The windows up to that row are in the aggregate of their profile, or the profile is gone.
absl::Status ReplaceWindows(Database& db, int64_t profile, int64_t up_to_row_id);
// What the rows of replaced windows still take.
absl::StatusOr<int64_t> ReplacedBytes(Database& db);
absl::StatusOr<bool> HasReplacedWindows(Database& db);
// Deletes rows of replaced windows: kSweepBytes, or one row that has more. Whether there may be others.
absl::StatusOr<bool> SweepWindows(Database& db);

}  // namespace perfd::daemon

#endif  // DAEMON_STORE_WINDOW_TABLE_H_
