// daemon/store/schema.h - the tables, and the steps from every older version of them to this one.
//
// Shape    Migrate brings a database forward, one version per transaction; user_version holds the number.
// Errors   kFailedPrecondition when the database is newer than this program: nothing is ever taken back.
// Source   sqlite.org/pragma.html: user_version, journal_mode, synchronous, application_id.
#ifndef DAEMON_STORE_SCHEMA_H_
#define DAEMON_STORE_SCHEMA_H_

#include "absl/status/status.h"
#include "daemon/store/database.h"

namespace perfd::daemon {

inline constexpr int kSchemaVersion = 9;

absl::Status Migrate(Database& db);

}  // namespace perfd::daemon

#endif  // DAEMON_STORE_SCHEMA_H_
