#include "daemon/store/audit_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/variant_wire.h"
#include "daemon/store/profile_id.h"

namespace perfd::daemon {

absl::Status InsertAudit(Database& db, const WindowRecord& record) {
  if (record.audit.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t profile, ParseProfileId(record.profile_id));
  ASSIGN_OR_RETURN(
      Statement given,
      db.Prepare("SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name='profile'), 0)"));
  ASSIGN_OR_RETURN(const bool row, given.Step());
  if (!row || profile > given.Int(0))
    return absl::InvalidArgumentError(
        absl::StrCat(record.profile_id, ": there never was such a profile"));
  // Of a deleted profile nobody owns the entries: only those who may see everything see them.
  ASSIGN_OR_RETURN(Statement insert,
                   db.Prepare("INSERT OR IGNORE INTO audit(profile, uid, unix_ns, stream_id, "
                              "sequence, item, body) VALUES(?1, coalesce((SELECT uid FROM profile "
                              "WHERE id=?1), -1), ?2, ?3, ?4, ?5, ?6)"));
  int64_t item = 0;
  for (const AuditEntry& entry : record.audit) {
    insert.Bind(1, profile);
    insert.Bind(2, entry.unix_ns);
    insert.Bind(3, record.stream_id);
    insert.Bind(4, static_cast<int64_t>(record.sequence));
    insert.Bind(5, item++);
    insert.BindBlob(6, wire::ToProto(entry).SerializeAsString());
    RETURN_IF_ERROR(insert.Run());
  }
  return absl::OkStatus();
}

absl::Status ApplyAuditRetention(Database& db, int64_t most) {
  return db.Exec(absl::StrCat("DELETE FROM audit WHERE id<=(SELECT max(id) FROM audit)-", most));
}

absl::StatusOr<std::vector<AuditEntry>> ReadAudit(Database& db, const AuditQuery& query) {
  int64_t profile = 0;
  if (!query.profile_id.empty()) {
    ASSIGN_OR_RETURN(profile, ParseProfileId(query.profile_id));
  }
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("SELECT id, body FROM audit WHERE (?1=0 OR profile=?1) AND "
                              "(?2<0 OR uid=?2) ORDER BY unix_ns DESC, id DESC LIMIT ?3"));
  statement.Bind(1, profile);
  statement.Bind(2, query.uid.has_value() ? static_cast<int64_t>(*query.uid) : int64_t{-1});
  statement.Bind(3, static_cast<int64_t>(query.limit));
  std::vector<AuditEntry> entries;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return entries;
    v1::AuditEntry body;
    if (!body.ParseFromString(statement.Blob(1)))
      return absl::DataLossError(absl::StrCat("audit entry ", statement.Int(0), " is damaged"));
    ASSIGN_OR_RETURN(AuditEntry entry, wire::FromProto(body));
    entries.push_back(std::move(entry));
  }
}

}  // namespace perfd::daemon
