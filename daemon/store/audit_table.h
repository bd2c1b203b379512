// daemon/store/audit_table.h - the audit log: every injection into a rank, for as long as there is room.
//
// Shape    an entry is written once, with the window that brings it ((stream, sequence, item) is its identity), and never
//          altered; it outlives its profile. Beyond kMostAuditEntries the oldest go, in ApplyAuditRetention only.
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

inline constexpr int64_t kMostAuditEntries = 1'000'000;

absl::Status InsertAudit(Database& db, const WindowRecord& record);
absl::Status ApplyAuditRetention(Database& db, int64_t most = kMostAuditEntries);

// Newest first.
absl::StatusOr<std::vector<AuditEntry>> ReadAudit(Database& db, const AuditQuery& query);

}  // namespace perfd::daemon

#endif  // DAEMON_STORE_AUDIT_TABLE_H_
