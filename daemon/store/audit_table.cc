#include "daemon/store/audit_table.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/variant_wire.h"
#include "daemon/store/profile_id.h"

namespace perfd::daemon {

namespace {

constexpr int64_t kMostDeletedAtOnce = 300'000;  // more than fit into the default room of a user
constexpr int64_t kMostAgedAtOnce = 20'000;  // a clock that has jumped must not cost the whole log
constexpr int64_t kStep = 256;

// One sender's entries about one user's ranks.
struct AuditUse {
  int64_t uid = 0;
  std::string sender;
  int64_t entries = 0;
  int64_t bytes = 0;
};

// The sender who has most of the user's bytes.
absl::StatusOr<std::optional<AuditUse>> LargestUse(Database& db, int64_t uid) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("SELECT uid, sender, entries, bytes FROM audit_use WHERE uid=?1 "
                              "ORDER BY bytes DESC, sender LIMIT 1"));
  statement.Bind(1, uid);
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return std::optional<AuditUse>();
  return std::optional<AuditUse>(
      AuditUse{statement.Int(0), statement.Text(1), statement.Int(2), statement.Int(3)});
}

absl::StatusOr<int64_t> BytesOf(Database& db, int64_t uid) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("SELECT coalesce(sum(bytes), 0) FROM audit_use WHERE uid=?1"));
  statement.Bind(1, uid);
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.Int(0) : 0;
}

void Count(std::vector<AuditTrim>& trims, const AuditUse& use, bool aged, int64_t entries) {
  for (AuditTrim& trim : trims) {
    if (trim.uid != use.uid || trim.brought_by != use.sender || trim.aged != aged) continue;
    trim.entries += static_cast<uint64_t>(entries);
    return;
  }
  trims.push_back({use.uid, use.sender, aged, static_cast<uint64_t>(entries)});
}

absl::StatusOr<int64_t> DeleteOldest(Database& db, const AuditUse& use, int64_t most) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE uid=?1 "
                              "AND sender=?2 ORDER BY id LIMIT ?3)"));
  statement.Bind(1, use.uid);
  statement.Bind(2, use.sender);
  statement.Bind(3, most);
  RETURN_IF_ERROR(statement.Run());
  return db.QueryInt("SELECT changes()");
}

absl::Status TrimUser(Database& db, int64_t uid, int64_t most_bytes,
                      std::vector<AuditTrim>& trims) {
  int64_t deleted = 0;
  while (most_bytes > 0 && deleted < kMostDeletedAtOnce) {
    ASSIGN_OR_RETURN(const int64_t bytes, BytesOf(db, uid));
    if (bytes <= most_bytes) break;
    ASSIGN_OR_RETURN(const std::optional<AuditUse> use, LargestUse(db, uid));
    if (!use.has_value() || use->entries <= 0) break;
    const int64_t of_one = std::max<int64_t>(1, use->bytes / use->entries);
    const int64_t step = std::min(1 + (bytes - most_bytes) / of_one, kStep);
    ASSIGN_OR_RETURN(const int64_t gone, DeleteOldest(db, *use, step));
    if (gone == 0) break;
    Count(trims, *use, false, gone);
    deleted += gone;
  }
  return absl::OkStatus();
}

absl::Status TrimAged(Database& db, int64_t before_unix_ns, std::vector<AuditTrim>& trims) {
  constexpr absl::string_view kAged =
      "(SELECT id FROM audit WHERE stored_ns<?1 ORDER BY stored_ns LIMIT ?2)";
  ASSIGN_OR_RETURN(Statement counts, db.Prepare(absl::StrCat(
                                         "SELECT uid, sender, count(*), 0 FROM audit WHERE id IN ",
                                         kAged, " GROUP BY uid, sender")));
  ASSIGN_OR_RETURN(Statement gone,
                   db.Prepare(absl::StrCat("DELETE FROM audit WHERE id IN ", kAged)));
  for (Statement* statement : {&counts, &gone}) {
    statement->Bind(1, before_unix_ns);
    statement->Bind(2, kMostAgedAtOnce);
  }
  while (true) {
    ASSIGN_OR_RETURN(const bool row, counts.Step());
    if (!row) break;
    Count(trims, {counts.Int(0), counts.Text(1), 0, 0}, true, counts.Int(2));
  }
  return gone.Run();
}

// The user whose ranks the entries are about. When the profile is gone nobody knows any more which nodes were asked: only a
// sender whose entries about it are in the log may add to them.
absl::StatusOr<int64_t> OwnerOf(Database& db, const WindowRecord& record, int64_t profile) {
  ASSIGN_OR_RETURN(Statement owner,
                   db.Prepare("SELECT coalesce((SELECT uid FROM profile WHERE id=?1), "
                              "(SELECT uid FROM audit WHERE profile=?1 AND sender=?2 LIMIT 1), "
                              "-1)"));
  owner.Bind(1, profile);
  owner.Bind(2, record.audit.front().origin.brought_by);
  ASSIGN_OR_RETURN(const bool row, owner.Step());
  if (row && owner.Int(0) >= 0) return owner.Int(0);
  return absl::InvalidArgumentError(
      absl::StrCat("there is no profile ", record.profile_id,
                   ", and this sender has brought no entries about it before"));
}

}  // namespace

absl::StatusOr<std::vector<AuditTrim>> InsertAudit(Database& db, const WindowRecord& record,
                                                   int64_t user_bytes) {
  std::vector<AuditTrim> trims;
  if (record.audit.empty()) return trims;
  ASSIGN_OR_RETURN(const int64_t profile, ParseProfileId(record.profile_id));
  ASSIGN_OR_RETURN(const int64_t uid, OwnerOf(db, record, profile));
  ASSIGN_OR_RETURN(Statement insert,
                   db.Prepare("INSERT OR IGNORE INTO audit(profile, uid, unix_ns, stream_id, "
                              "sequence, item, body, sender, stored_ns) VALUES(?1, ?2, ?3, ?4, ?5, "
                              "?6, ?7, ?8, ?9)"));
  int64_t item = 0;
  for (const AuditEntry& entry : record.audit) {
    insert.Bind(1, profile);
    insert.Bind(2, uid);
    insert.Bind(3, entry.unix_ns);
    insert.Bind(4, record.stream.id);
    insert.Bind(5, static_cast<int64_t>(record.sequence));
    insert.Bind(6, item++);
    insert.BindBlob(7, wire::ToProto(entry).SerializeAsString());
    insert.Bind(8, entry.origin.brought_by);
    insert.Bind(9, record.received_unix_ns);
    RETURN_IF_ERROR(insert.Run());
  }
  RETURN_IF_ERROR(TrimUser(db, uid, user_bytes, trims));
  return trims;
}

absl::StatusOr<std::vector<AuditTrim>> ApplyAuditRetention(Database& db,
                                                           const AuditRetention& policy,
                                                           int64_t now_unix_ns) {
  std::vector<AuditTrim> trims;
  if (policy.keep_ns > 0) RETURN_IF_ERROR(TrimAged(db, now_unix_ns - policy.keep_ns, trims));
  ASSIGN_OR_RETURN(Statement users, db.Prepare("SELECT uid FROM audit_use GROUP BY uid HAVING "
                                               "sum(bytes)>?1"));
  users.Bind(1, policy.user_bytes);
  std::vector<int64_t> large;
  while (policy.user_bytes > 0) {
    ASSIGN_OR_RETURN(const bool row, users.Step());
    if (!row) break;
    large.push_back(users.Int(0));
  }
  for (const int64_t uid : large) RETURN_IF_ERROR(TrimUser(db, uid, policy.user_bytes, trims));
  return trims;
}

absl::StatusOr<int64_t> AuditBytes(Database& db) {
  return db.QueryInt("SELECT coalesce(sum(bytes), 0) FROM audit_use");
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
