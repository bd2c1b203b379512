// daemon/store/audit_table.h - the audit log: every injection into a rank, for as long as there is room.
//
// Shape    an entry is written once, with the window that brings it ((stream, sequence, item) is its identity), and never
//          altered; it outlives its profile.
// Rules    every user has as many bytes; above them the oldest entries go of the sender who has most of that user's: a
//          flood displaces itself, never another user, and another sender only down to an equal share.
// Units    bytes as the `bytes` column reckons them: at least what the row takes in the file, with its indexes.
// Errors   call inside a transaction; on an error roll it back. ReadAudit: kDataLoss for a damaged entry.
// Source   promise P8: "every injection is in an audit log".
#ifndef DAEMON_STORE_AUDIT_TABLE_H_
#define DAEMON_STORE_AUDIT_TABLE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/loop_measurement.h"
#include "daemon/store/database.h"
#include "daemon/store/records.h"

namespace perfd::daemon {

// At once: what there is too much of the user then is not left to the next retention. Returns what was deleted for it.
absl::StatusOr<std::vector<AuditTrim>> InsertAudit(Database& db, const WindowRecord& record,
                                                   int64_t user_bytes);
absl::StatusOr<std::vector<AuditTrim>> ApplyAuditRetention(Database& db,
                                                           const AuditRetention& policy,
                                                           int64_t now_unix_ns);

// Of everybody's entries.
absl::StatusOr<int64_t> AuditBytes(Database& db);

// Newest first.
absl::StatusOr<std::vector<AuditEntry>> ReadAudit(Database& db, const AuditQuery& query);

}  // namespace perfd::daemon

#endif  // DAEMON_STORE_AUDIT_TABLE_H_
