#include "daemon/store/window_table.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "daemon/store/audit_table.h"
#include "daemon/store/profile_id.h"

namespace perfd::daemon {
namespace {

constexpr int64_t kLeastRowCost = 8192;  // bytes: what a small row takes as long as

struct Range {
  int64_t first = 0;
  int64_t last = 0;
};

// The range that starts at or before `sequence`, and the one right after it.
struct Neighbours {
  std::optional<Range> before;
  std::optional<Range> after;
};

absl::StatusOr<std::optional<Range>> OneRange(Database& db, const char* sql,
                                              absl::string_view stream, int64_t sequence) {
  ASSIGN_OR_RETURN(Statement statement, db.Prepare(sql));
  statement.Bind(1, stream);
  statement.Bind(2, sequence);
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return std::optional<Range>();
  return std::optional<Range>(Range{statement.Int(0), statement.Int(1)});
}

absl::StatusOr<Neighbours> FindNeighbours(Database& db, absl::string_view stream,
                                          int64_t sequence) {
  Neighbours found;
  ASSIGN_OR_RETURN(found.before,
                   OneRange(db,
                            "SELECT first, last FROM stream_range WHERE stream_id=?1 AND first<=?2 "
                            "ORDER BY first DESC LIMIT 1",
                            stream, sequence));
  ASSIGN_OR_RETURN(found.after,
                   OneRange(db,
                            "SELECT first, last FROM stream_range WHERE stream_id=?1 AND first>?2 "
                            "ORDER BY first LIMIT 1",
                            stream, sequence));
  return found;
}

absl::Status WriteRange(Database& db, const char* sql, absl::string_view stream, int64_t first,
                        int64_t last) {
  ASSIGN_OR_RETURN(Statement statement, db.Prepare(sql));
  statement.Bind(1, stream);
  statement.Bind(2, first);
  statement.Bind(3, last);
  return statement.Run();
}

// Whether one more sequence of it may begin a range of its own.
absl::Status CheckGaps(Database& db, const StreamKey& stream) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("SELECT count(*) FROM stream_range WHERE stream_id=?1"));
  statement.Bind(1, stream.id);
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row || statement.Int(0) <= stream.most_gaps) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("the stream has more than ", stream.most_gaps,
                   " gaps: move the agent's spool away, it then begins a new one "
                   "(limits.gaps_per_stream)"));
}

// Adds one sequence to the set, joining ranges that now touch.
absl::Status AddSequence(Database& db, const StreamKey& key, int64_t sequence,
                         const Neighbours& near) {
  const absl::string_view stream = key.id;
  const bool joins_before = near.before.has_value() && near.before->last + 1 == sequence;
  const bool joins_after = near.after.has_value() && near.after->first == sequence + 1;
  const int64_t first = joins_before ? near.before->first : sequence;
  const int64_t last = joins_after ? near.after->last : sequence;
  if (!joins_before && !joins_after) RETURN_IF_ERROR(CheckGaps(db, key));
  if (joins_after) {
    RETURN_IF_ERROR(
        WriteRange(db, "DELETE FROM stream_range WHERE stream_id=?1 AND first=?2 AND last=?3",
                   stream, near.after->first, near.after->last));
  }
  return WriteRange(
      db, "INSERT OR REPLACE INTO stream_range(stream_id, first, last) VALUES(?1, ?2, ?3)", stream,
      first, last);
}

absl::StatusOr<int64_t> InsertWindow(Database& db, const WindowRecord& record, int64_t profile) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("INSERT INTO window(profile, stream_id, sequence, node, bytes, body) "
                              "VALUES(?1, ?2, ?3, ?4, ?5, ?6)"));
  statement.Bind(1, profile);
  statement.Bind(2, record.stream.id);
  statement.Bind(3, static_cast<int64_t>(record.sequence));
  statement.Bind(4, record.node);
  statement.Bind(5, static_cast<int64_t>(record.body.size()));
  statement.BindBlob(6, record.body);
  RETURN_IF_ERROR(statement.Run());
  return db.LastInsertId();
}

absl::StatusOr<int64_t> LastNumber(Database& db, const std::string& sender) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("SELECT max(number) FROM stream_owner WHERE sender=?1"));
  statement.Bind(1, sender);
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.Int(0) : 0;
}

// Beyond kMostStreams of a sender those it began first, a few at a time. Not while a window of theirs is kept one by one, as it would be
// taken again: who has twice as many of such is refused.
absl::Status ForgetFirstStreams(Database& db, const std::string& sender, int64_t last) {
  const std::string first = absl::StrCat(
      "IN (SELECT stream_id FROM (SELECT stream_id FROM stream_owner WHERE sender=?1 AND number<=",
      last - kMostStreams, " ORDER BY number LIMIT 16) AS o",
      " WHERE NOT EXISTS (SELECT 1 FROM window w WHERE w.stream_id=o.stream_id))");
  for (const char* table : {"stream_range", "stream_owner"}) {
    ASSIGN_OR_RETURN(Statement statement,
                     db.Prepare(absl::StrCat("DELETE FROM ", table, " WHERE stream_id ", first)));
    statement.Bind(1, sender);
    RETURN_IF_ERROR(statement.Run());
  }
  ASSIGN_OR_RETURN(Statement count,
                   db.Prepare("SELECT count(*) FROM stream_owner WHERE sender=?1"));
  count.Bind(1, sender);
  ASSIGN_OR_RETURN(const bool row, count.Step());
  if (!row || count.Int(0) <= 2 * kMostStreams) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("there are ", count.Int(0), " streams of ", sender,
                   " whose windows are not part of a report yet: keep the agent's spool"));
}

// Who began a stream is remembered, so that there can be a bound; whose it is, with the first window of it that is stored.
absl::Status Remember(Database& db, const StreamKey& stream, bool owns) {
  if (stream.owner.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(Statement known,
                   db.Prepare("SELECT owner FROM stream_owner WHERE stream_id=?1"));
  known.Bind(1, stream.id);
  ASSIGN_OR_RETURN(const bool there, known.Step());
  if (there && (!owns || known.Text(0) == stream.owner)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t last, LastNumber(db, stream.owner));
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("INSERT OR REPLACE INTO stream_owner(stream_id, owner, sender, "
                              "number) VALUES(?1, ?2, ?3, ?4)"));
  statement.Bind(1, stream.id);
  statement.Bind(2, owns ? stream.owner : "");
  statement.Bind(3, stream.owner);
  statement.Bind(4, last + 1);
  RETURN_IF_ERROR(statement.Run());
  return ForgetFirstStreams(db, stream.owner, last + 1);
}

absl::Status CheckIdentity(absl::string_view stream_id, uint64_t sequence) {
  if (sequence != 0 && sequence <= kMaxSequence && !stream_id.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("window sequence ", sequence, " of stream '", stream_id, "' is out of range"));
}

struct Replaced {
  int64_t profile = 0;
  int64_t up_to = 0;
};

absl::StatusOr<std::optional<Replaced>> FirstReplaced(Database& db) {
  ASSIGN_OR_RETURN(
      Statement statement,
      db.Prepare("SELECT profile, up_to FROM replaced_window ORDER BY profile LIMIT 1"));
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return std::optional<Replaced>();
  return std::optional<Replaced>({statement.Int(0), statement.Int(1)});
}

// Rows that go together: those up to `last`.
struct Sweep {
  int64_t last = 0;
  int64_t bytes = 0;  // of their bodies
  int64_t cost = 0;
  bool all = false;  // nothing is left after them
};

absl::StatusOr<Sweep> NextSweep(Database& db, const Replaced& replaced, int64_t most) {
  ASSIGN_OR_RETURN(
      Statement statement,
      db.Prepare("SELECT id, bytes FROM window WHERE profile=?1 AND id<=?2 ORDER BY id"));
  statement.Bind(1, replaced.profile);
  statement.Bind(2, replaced.up_to);
  Sweep sweep;
  while (sweep.cost < most) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    sweep.all = !row;
    if (sweep.all) break;
    const int64_t cost = std::max(kLeastRowCost, statement.Int(1));
    if (sweep.cost > 0 && sweep.cost + cost > most) break;
    sweep.last = statement.Int(0);
    sweep.bytes += statement.Int(1);
    sweep.cost += cost;
  }
  return sweep;
}

absl::Status RunSweep(Database& db, const Replaced& replaced, const Sweep& sweep) {
  ASSIGN_OR_RETURN(Statement rows, db.Prepare("DELETE FROM window WHERE profile=?1 AND id<=?2"));
  rows.Bind(1, replaced.profile);
  rows.Bind(2, sweep.last);
  RETURN_IF_ERROR(rows.Run());
  ASSIGN_OR_RETURN(
      Statement note,
      db.Prepare(sweep.all ? "DELETE FROM replaced_window WHERE profile=?1"
                           : "UPDATE replaced_window SET bytes=bytes-?2 WHERE profile=?1"));
  note.Bind(1, replaced.profile);
  if (!sweep.all) note.Bind(2, sweep.bytes);
  return note.Run();
}

bool Contains(const Neighbours& near, int64_t sequence) {
  return near.before.has_value() && near.before->last >= sequence;
}

}  // namespace

absl::StatusOr<AppendResult> AppendWindow(Database& db, const WindowRecord& record,
                                          int64_t audit_user_bytes) {
  ASSIGN_OR_RETURN(const int64_t profile, ParseProfileId(record.profile_id));
  RETURN_IF_ERROR(CheckIdentity(record.stream.id, record.sequence));
  RETURN_IF_ERROR(CheckOwner(db, record.stream));
  const auto sequence = static_cast<int64_t>(record.sequence);
  ASSIGN_OR_RETURN(const Neighbours near, FindNeighbours(db, record.stream.id, sequence));
  AppendResult result;
  result.duplicate = Contains(near, sequence);
  if (!result.duplicate) {
    ASSIGN_OR_RETURN(result.row_id, InsertWindow(db, record, profile));
    ASSIGN_OR_RETURN(result.trimmed, InsertAudit(db, record, audit_user_bytes));
    RETURN_IF_ERROR(AddSequence(db, record.stream, sequence, near));
    RETURN_IF_ERROR(Remember(db, record.stream, /*owns=*/true));
  }
  ASSIGN_OR_RETURN(result.stream_missing, MissingSequences(db, record.stream.id));
  return result;
}

absl::Status SkipWindow(Database& db, const StreamKey& stream, uint64_t sequence) {
  RETURN_IF_ERROR(CheckIdentity(stream.id, sequence));
  RETURN_IF_ERROR(CheckOwner(db, stream));
  const auto number = static_cast<int64_t>(sequence);
  ASSIGN_OR_RETURN(const Neighbours near, FindNeighbours(db, stream.id, number));
  if (Contains(near, number)) return absl::OkStatus();
  RETURN_IF_ERROR(AddSequence(db, stream, number, near));
  return Remember(db, stream, /*owns=*/false);
}

absl::Status CheckOwner(Database& db, const StreamKey& stream) {
  if (stream.owner.empty() || stream.takes_over) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string owner, StreamOwner(db, stream.id));
  if (owner.empty() || owner == stream.owner) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("the stream is of ", owner, ", not of ", stream.owner));
}

absl::StatusOr<uint64_t> MissingSequences(Database& db, absl::string_view stream_id) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("SELECT max(last)-min(first)+1-sum(last-first+1) FROM stream_range "
                              "WHERE stream_id=?1"));
  statement.Bind(1, stream_id);
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? static_cast<uint64_t>(statement.Int(0)) : 0;
}

absl::StatusOr<int64_t> LastRowId(Database& db) {
  // AUTOINCREMENT keeps it here even when the row is gone (sqlite.org/autoinc.html).
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("SELECT seq FROM sqlite_sequence WHERE name='window'"));
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.Int(0) : 0;
}

absl::StatusOr<uint64_t> StoredSequence(Database& db, absl::string_view stream_id) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("SELECT max(last) FROM stream_range WHERE stream_id=?1"));
  statement.Bind(1, stream_id);
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? static_cast<uint64_t>(statement.Int(0)) : 0;
}

absl::StatusOr<std::string> StreamOwner(Database& db, absl::string_view stream_id) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("SELECT owner FROM stream_owner WHERE stream_id=?1"));
  statement.Bind(1, stream_id);
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.Text(0) : "";
}

absl::StatusOr<std::map<std::string, uint64_t>> CountWindows(Database& db) {
  ASSIGN_OR_RETURN(Statement statement,
                   db.Prepare("SELECT profile, count(*) FROM window w WHERE NOT EXISTS "
                              "(SELECT 1 FROM replaced_window r WHERE r.profile=w.profile AND "
                              "w.id<=r.up_to) GROUP BY profile"));
  std::map<std::string, uint64_t> counts;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return counts;
    counts[FormatProfileId(statement.Int(0))] = static_cast<uint64_t>(statement.Int(1));
  }
}

absl::Status ForEachWindow(
    Database& db, int64_t profile,
    const std::function<absl::Status(int64_t row_id, const std::string& body)>& visit) {
  ASSIGN_OR_RETURN(
      Statement statement,
      db.Prepare("SELECT id, body FROM window WHERE profile=?1 AND id>ifnull((SELECT up_to FROM "
                 "replaced_window WHERE profile=?1), 0) ORDER BY id"));
  statement.Bind(1, profile);
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return absl::OkStatus();
    RETURN_IF_ERROR(visit(statement.Int(0), statement.Blob(1)));
  }
}

absl::Status ReplaceWindows(Database& db, int64_t profile, int64_t up_to_row_id) {
  ASSIGN_OR_RETURN(
      Statement statement,
      db.Prepare("INSERT OR REPLACE INTO replaced_window(profile, up_to, bytes) "
                 "SELECT ?1, up_to, (SELECT ifnull(sum(bytes), 0) FROM window WHERE profile=?1 AND "
                 "id<=up_to) FROM (SELECT max(?2, ifnull((SELECT up_to FROM replaced_window WHERE "
                 "profile=?1), 0)) AS up_to)"));
  statement.Bind(1, profile);
  statement.Bind(2, up_to_row_id);
  return statement.Run();
}

absl::StatusOr<int64_t> ReplacedBytes(Database& db) {
  return db.QueryInt("SELECT ifnull(sum(bytes), 0) FROM replaced_window");
}

absl::StatusOr<bool> HasReplacedWindows(Database& db) {
  ASSIGN_OR_RETURN(const std::optional<Replaced> replaced, FirstReplaced(db));
  return replaced.has_value();
}

absl::StatusOr<bool> SweepWindows(Database& db) {
  for (int64_t cost = 0; cost < kSweepBytes;) {
    ASSIGN_OR_RETURN(const std::optional<Replaced> replaced, FirstReplaced(db));
    if (!replaced.has_value()) return false;
    ASSIGN_OR_RETURN(const Sweep sweep, NextSweep(db, *replaced, kSweepBytes - cost));
    RETURN_IF_ERROR(RunSweep(db, *replaced, sweep));
    cost += sweep.cost + kLeastRowCost;
  }
  return true;
}

}  // namespace perfd::daemon
