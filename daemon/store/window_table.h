// daemon/store/window_table.h - windows and the set of sequences every stream has delivered.
//
// Shape    Append inserts a window exactly once: the set of stored sequences outlives the window itself.
// Errors   call inside a transaction; on an error roll it back.
#ifndef DAEMON_STORE_WINDOW_TABLE_H_
#define DAEMON_STORE_WINDOW_TABLE_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/store/database.h"
#include "daemon/store/records.h"

namespace perfd {

inline constexpr uint64_t kMaxSequence = uint64_t{1} << 62;

absl::StatusOr<AppendResult> AppendWindow(Database& db, const WindowRecord& record);

// Highest stored sequence; 0: none.
absl::StatusOr<uint64_t> StoredSequence(Database& db, absl::string_view stream_id);

// Windows of a profile in the order of commits.
absl::Status ForEachWindow(
    Database& db, int64_t profile, int64_t after_row_id,
    const std::function<absl::Status(int64_t row_id, std::string body)>& visit);

absl::Status DeleteWindows(Database& db, int64_t profile, int64_t up_to_row_id);

}  // namespace perfd

#endif  // DAEMON_STORE_WINDOW_TABLE_H_
