#include "daemon/store/profile_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/wire.h"
#include "daemon/store/audit_table.h"
#include "daemon/store/profile_id.h"
#include "daemon/store/window_table.h"

namespace perfd::daemon {
namespace {

constexpr int kAgedShare = 16;

absl::StatusOr<ProfileStatus> DecodeStatus(int64_t profile, const std::string& bytes) {
  v1::ProfileStatus message;
  if (!message.ParseFromString(bytes)) {
    return absl::DataLossError(
        absl::StrCat("the stored status of ", FormatProfileId(profile), " is damaged"));
  }
  return wire::FromProto(message);
}

void BindProfile(Statement& statement, const ProfileStatus& status) {
  statement.Bind(1, static_cast<int64_t>(status.requester.uid));
  statement.Bind(2, status.name);
  statement.Bind(3, static_cast<int64_t>(status.state));
  statement.Bind(4, static_cast<int64_t>(IsFinal(status.state) ? 1 : 0));
  statement.Bind(5, status.submitted_unix_ns);
  statement.Bind(6, status.finished_unix_ns);
  statement.BindBlob(7, wire::ToProto(status).SerializeAsString());
}

absl::Status PutBlob(Database& db, absl::string_view table, int64_t profile,
                     absl::string_view body) {
  ASSIGN_OR_RETURN(Statement statement, db.Prepare(absl::StrCat("INSERT OR REPLACE INTO ", table,
                                                                "(profile, body) VALUES(?1, ?2)")));
  statement.Bind(1, profile);
  statement.BindBlob(2, body);
  return statement.Run();
}

absl::StatusOr<std::optional<std::string>> GetBlob(Database& db, absl::string_view table,
                                                   int64_t profile) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare(absl::StrCat("SELECT body FROM ", table, " WHERE profile=?1")));
  statement.Bind(1, profile);
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return std::optional<std::string>();
  return std::optional<std::string>(statement.Blob(0));
}

absl::Status DeleteFrom(Database& db, absl::string_view table, absl::string_view column,
                        int64_t profile) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare(absl::StrCat("DELETE FROM ", table, " WHERE ", column, "=?1")));
  statement.Bind(1, profile);
  return statement.Run();
}

absl::Status WriteLoopResults(Database& db, int64_t profile, const Report& report) {
  RETURN_IF_ERROR(DeleteFrom(db, "loop_result", "profile", profile));
  ASSIGN_OR_RETURN(
      Statement insert,
      db.Prepare(
          "INSERT OR REPLACE INTO loop_result(profile, location, function, file, first_line, "
          "last_line, share, share_low, share_high, samples) "
          "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"));
  for (const ReportRow& row : report.loops) {
    insert.Bind(1, profile);
    insert.Bind(2, row.id);
    insert.Bind(3, row.location.function);
    insert.Bind(4, row.location.source.file);
    insert.Bind(5, static_cast<int64_t>(row.location.source.first_line));
    insert.Bind(6, static_cast<int64_t>(row.location.source.last_line));
    insert.Bind(7, row.share);
    insert.Bind(8, row.share_interval.low);
    insert.Bind(9, row.share_interval.high);
    insert.Bind(10, static_cast<int64_t>(row.samples));
    RETURN_IF_ERROR(insert.Run());
  }
  return absl::OkStatus();
}

// Of profile p.
constexpr char kResultBytesOfProfile[] =
    "length(p.status)"
    " + ifnull((SELECT length(body) FROM report WHERE profile=p.id), 0)"
    " + ifnull((SELECT length(body) FROM aggregate WHERE profile=p.id), 0)";

// How many bytes went with it; its windows go later.
absl::StatusOr<int64_t> DeleteProfile(Database& db, int64_t profile) {
  ASSIGN_OR_RETURN(const int64_t bytes,
                   db.QueryInt(absl::StrCat("SELECT ", kResultBytesOfProfile,
                                            " FROM profile p WHERE id=", profile)));
  for (const char* table : {"aggregate", "report", "loop_result"}) {
    RETURN_IF_ERROR(DeleteFrom(db, table, "profile", profile));
  }
  RETURN_IF_ERROR(ReplaceWindows(db, profile, INT64_MAX));
  RETURN_IF_ERROR(DeleteFrom(db, "profile", "id", profile));
  return bytes;
}

// The same, with the windows that are its own.
constexpr char kWindowBytesOfProfile[] =
    " + ifnull((SELECT sum(bytes) FROM window WHERE profile=p.id AND id>ifnull("
    "(SELECT up_to FROM replaced_window WHERE profile=p.id), 0)), 0)";

struct FinalProfile {
  int64_t id = 0;  // 0: none
  int64_t bytes = 0;
};

absl::StatusOr<FinalProfile> OldestFinalOf(Database& db, ProfileHolder holder) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare(absl::StrCat("SELECT id, ", kResultBytesOfProfile, kWindowBytesOfProfile,
                                           " FROM profile p WHERE holder=?1 AND final=1 "
                                           "ORDER BY finished_ns LIMIT 1")));
  statement.Bind(1, holder);
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? FinalProfile{statement.Int(0), statement.Int(1)} : FinalProfile{};
}

// The oldest that is final of who has most of those, if that is more than `above`; 0: none. What it takes is taken off `bytes`.
absl::StatusOr<int64_t> OldestOfLargest(Database& db, int64_t above, bool of_users,
                                        BytesByHolder& bytes) {
  auto most = bytes.end();
  for (auto it = bytes.begin(); it != bytes.end(); ++it) {
    if (of_users && HasRoomOfItsOwn(it->first)) continue;
    if (it->second.finished > above &&
        (most == bytes.end() || it->second.finished > most->second.finished))
      most = it;
  }
  if (most == bytes.end()) return 0;
  ASSIGN_OR_RETURN(const FinalProfile oldest, OldestFinalOf(db, most->first));
  most->second.finished = oldest.id == 0 ? 0 : most->second.finished - oldest.bytes;
  return oldest.id;
}

// The oldest final profile that ended before `before`; 0: none.
absl::StatusOr<int64_t> OldestFinal(Database& db, int64_t before,
                                    const std::vector<std::string>& spared) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("SELECT id FROM profile WHERE final=1 AND finished_ns<?1 "
                              "ORDER BY finished_ns, id"));
  statement.Bind(1, before);
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return 0;
    const int64_t profile = statement.Int(0);
    if (std::find(spared.begin(), spared.end(), FormatProfileId(profile)) == spared.end())
      return profile;
  }
}

// What is too much for all together, then what is too old; 0: nothing.
absl::StatusOr<int64_t> NotKept(Database& db, const RetentionPolicy& policy, int64_t now_unix_ns,
                                bool aged, BytesByHolder& bytes) {
  ASSIGN_OR_RETURN(int64_t finished, UsedBytes(db));
  for (const auto& [holder, held] : bytes) finished -= held.active;
  if (policy.max_bytes > 0 && finished > policy.max_bytes) {
    ASSIGN_OR_RETURN(const int64_t profile, OldestOfLargest(db, 0, /*of_users=*/false, bytes));
    return profile != 0 ? profile : OldestFinal(db, INT64_MAX, {});
  }
  if (policy.keep_ns <= 0 || !aged) return 0;
  return OldestFinal(db, now_unix_ns - policy.keep_ns, policy.spared);
}

}  // namespace

absl::StatusOr<std::string> InsertProfile(Database& db, ProfileStatus status, bool by_site) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("INSERT INTO profile(uid, name, state, final, submitted_ns, "
                              "finished_ns, status, holder) "
                              "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"));
  BindProfile(statement, status);
  statement.Bind(8, by_site ? kSite : HolderOf(status.requester));
  RETURN_IF_ERROR(statement.Run());
  status.id = FormatProfileId(db.LastInsertId());
  RETURN_IF_ERROR(UpdateProfile(db, status));
  return status.id;
}

absl::Status UpdateProfile(Database& db, const ProfileStatus& status) {
  ASSIGN_OR_RETURN(const int64_t profile, ParseProfileId(status.id));
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("UPDATE profile SET uid=?1, name=?2, state=?3, final=?4, "
                              "submitted_ns=?5, finished_ns=?6, status=?7 WHERE id=?8"));
  BindProfile(statement, status);
  statement.Bind(8, profile);
  return statement.Run();
}

absl::Status WriteAggregate(Database& db, int64_t profile, absl::string_view body) {
  return PutBlob(db, "aggregate", profile, body);
}

absl::Status WriteFinal(Database& db, const FinalRecord& record) {
  ASSIGN_OR_RETURN(const int64_t profile, ParseProfileId(record.status.id));
  RETURN_IF_ERROR(PutBlob(db, "report", profile, wire::ToProto(record.report).SerializeAsString()));
  RETURN_IF_ERROR(WriteAggregate(db, profile, record.aggregate));
  RETURN_IF_ERROR(WriteLoopResults(db, profile, record.report));
  RETURN_IF_ERROR(UpdateProfile(db, record.status));
  return ReplaceWindows(db, profile, record.up_to_row_id);
}

absl::StatusOr<int> ApplyRetention(Database& db, const RetentionPolicy& policy,
                                   int64_t now_unix_ns) {
  int deleted = 0;
  int64_t gone = 0;  // bytes
  ASSIGN_OR_RETURN(const int64_t finals, db.QueryInt("SELECT count(*) FROM profile WHERE final=1"));
  const int64_t most_aged = 1 + finals / kAgedShare;
  BytesByHolder bytes = policy.bytes;
  for (; deleted < kMaxDeletedPerCall && gone < kMaxDeletedBytesPerCall; ++deleted) {
    ASSIGN_OR_RETURN(const int64_t profile,
                     NotKept(db, policy, now_unix_ns, deleted < most_aged, bytes));
    if (profile == 0) break;
    ASSIGN_OR_RETURN(const int64_t went, DeleteProfile(db, profile));
    gone += went;
  }
  // Of its own number: one user's many profiles do not hold up what goes for everybody.
  gone = 0;
  for (int of_users = 0; policy.user_bytes > 0 && of_users < kMaxDeletedPerCall &&
                         gone < kMaxDeletedBytesPerCall;
       ++of_users) {
    ASSIGN_OR_RETURN(const int64_t profile,
                     OldestOfLargest(db, policy.user_bytes, /*of_users=*/true, bytes));
    if (profile == 0) break;
    ASSIGN_OR_RETURN(const int64_t went, DeleteProfile(db, profile));
    gone += went;
    ++deleted;
  }
  return deleted;
}

absl::StatusOr<BytesByHolder> SumBytes(Database& db) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare(absl::StrCat("SELECT holder, final, sum(", kResultBytesOfProfile, kWindowBytesOfProfile,
                                           ") FROM profile p GROUP BY holder, final")));
  BytesByHolder bytes;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return bytes;
    ProfileBytes& held = bytes[statement.Int(0)];
    (statement.Int(1) != 0 ? held.finished : held.active) = statement.Int(2);
  }
}

absl::StatusOr<ProfileStatus> ReadProfile(Database& db, int64_t profile) {
  ASSIGN_OR_RETURN(Statement statement, db.Prepare("SELECT status FROM profile WHERE id=?1"));
  statement.Bind(1, profile);
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row)
    return absl::NotFoundError(absl::StrCat("there is no profile ", FormatProfileId(profile)));
  return DecodeStatus(profile, statement.Blob(0));
}

absl::StatusOr<ProfileHolder> ReadHolder(Database& db, int64_t profile) {
  ASSIGN_OR_RETURN(Statement statement, db.Prepare("SELECT holder FROM profile WHERE id=?1"));
  statement.Bind(1, profile);
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row)
    return absl::NotFoundError(absl::StrCat("there is no profile ", FormatProfileId(profile)));
  return statement.Int(0);
}

absl::StatusOr<std::vector<ProfileStatus>> ReadProfiles(Database& db, const ProfileQuery& query) {
  ASSIGN_OR_RETURN(
      Statement statement,
      db.Prepare("SELECT id, status FROM profile WHERE (?1<0 OR uid=?1) AND (?2=0 OR final=0) "
                 "ORDER BY id DESC LIMIT ?3"));
  statement.Bind(1, query.uid.has_value() ? static_cast<int64_t>(*query.uid) : int64_t{-1});
  statement.Bind(2, static_cast<int64_t>(query.active_only ? 1 : 0));
  statement.Bind(3, static_cast<int64_t>(query.limit));
  std::vector<ProfileStatus> profiles;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return profiles;
    ASSIGN_OR_RETURN(ProfileStatus status, DecodeStatus(statement.Int(0), statement.Blob(1)));
    profiles.push_back(std::move(status));
  }
}

absl::StatusOr<std::vector<std::string>> FindProfiles(Database& db, absl::string_view prefix,
                                                      std::optional<uint32_t> uid) {
  ASSIGN_OR_RETURN(
      Statement statement,
      db.Prepare("SELECT id FROM profile WHERE (?1<0 OR uid=?1) AND "
                 "substr(printf('p-%06d', id), 1, length(?2))=?2 ORDER BY id DESC LIMIT 2"));
  statement.Bind(1, uid.has_value() ? static_cast<int64_t>(*uid) : int64_t{-1});
  statement.Bind(2, prefix);
  std::vector<std::string> found;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return found;
    found.push_back(FormatProfileId(statement.Int(0)));
  }
}

absl::StatusOr<std::string> ReadAggregate(Database& db, int64_t profile) {
  ASSIGN_OR_RETURN(std::optional<std::string> body, GetBlob(db, "aggregate", profile));
  return std::move(body).value_or("");
}

absl::StatusOr<std::string> ReadReport(Database& db, int64_t profile) {
  ASSIGN_OR_RETURN(std::optional<std::string> body, GetBlob(db, "report", profile));
  if (!body.has_value()) {
    return absl::NotFoundError(absl::StrCat(FormatProfileId(profile), " has no stored report"));
  }
  return *std::move(body);
}

absl::StatusOr<Report> DecodeReport(int64_t profile, const std::string& body) {
  v1::Report message;
  if (!message.ParseFromString(body)) {
    return absl::DataLossError(
        absl::StrCat("the stored report of ", FormatProfileId(profile), " is damaged"));
  }
  return wire::FromProto(message);
}

absl::StatusOr<std::vector<LoopHistory>> ReadLoopHistory(Database& db, absl::string_view location,
                                                         int limit) {
  ASSIGN_OR_RETURN(
      Statement statement,
      db.Prepare(
          "SELECT profile, function, file, first_line, last_line, share, share_low, share_high, "
          "samples FROM loop_result WHERE location=?1 ORDER BY profile DESC LIMIT ?2"));
  statement.Bind(1, location);
  statement.Bind(2, static_cast<int64_t>(limit));
  std::vector<LoopHistory> history;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return history;
    history.push_back({.profile_id = FormatProfileId(statement.Int(0)),
                       .function = statement.Text(1),
                       .file = statement.Text(2),
                       .first_line = static_cast<int32_t>(statement.Int(3)),
                       .last_line = static_cast<int32_t>(statement.Int(4)),
                       .share = statement.Real(5),
                       .share_interval = {statement.Real(6), statement.Real(7)},
                       .samples = static_cast<uint64_t>(statement.Int(8))});
  }
}

absl::StatusOr<std::vector<uint64_t>> CountStates(Database& db) {
  std::vector<uint64_t> counts(static_cast<size_t>(ProfileState::kCancelled) + 1);
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("SELECT state, count(*) FROM profile GROUP BY state"));
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return counts;
    const auto state = static_cast<size_t>(statement.Int(0));
    if (state < counts.size()) counts[state] = static_cast<uint64_t>(statement.Int(1));
  }
}

// The audit log has room of its own, and replaced windows are going: no profile goes because of them.
absl::StatusOr<int64_t> UsedBytes(Database& db) {
  ASSIGN_OR_RETURN(const int64_t pages, db.QueryInt("PRAGMA page_count"));
  ASSIGN_OR_RETURN(const int64_t free, db.QueryInt("PRAGMA freelist_count"));
  ASSIGN_OR_RETURN(const int64_t size, db.QueryInt("PRAGMA page_size"));
  ASSIGN_OR_RETURN(const int64_t audit, AuditBytes(db));
  ASSIGN_OR_RETURN(const int64_t replaced, ReplacedBytes(db));
  return std::max<int64_t>(0, (pages - free) * size - audit - replaced);
}

}  // namespace perfd::daemon
