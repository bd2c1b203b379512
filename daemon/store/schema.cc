#include "daemon/store/schema.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace perfd::daemon {
namespace {

// Version 1. `stream_range` holds, per stream, the stored sequences as disjoint closed intervals, so that a window is
// known as stored for ever at the cost of one row per gap. `window.id` is the order of commits.
constexpr char kVersion1[] = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE profile(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  uid INTEGER NOT NULL,
  name TEXT NOT NULL,
  state INTEGER NOT NULL,
  final INTEGER NOT NULL,
  submitted_ns INTEGER NOT NULL,
  finished_ns INTEGER NOT NULL,
  status BLOB NOT NULL);
CREATE INDEX profile_by_final ON profile(final, finished_ns);
CREATE TABLE window(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  profile INTEGER NOT NULL,
  stream_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  node TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  body BLOB NOT NULL,
  UNIQUE(stream_id, sequence));
CREATE INDEX window_by_profile ON window(profile, id);
CREATE TABLE stream_range(
  stream_id TEXT NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  PRIMARY KEY(stream_id, first)) WITHOUT ROWID;
CREATE TABLE aggregate(profile INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE report(profile INTEGER PRIMARY KEY, body BLOB NOT NULL);
)sql";

// Version 2: one row per loop of a final profile, for the history of a loop over many profiles.
constexpr char kVersion2[] = R"sql(
CREATE TABLE loop_result(
  profile INTEGER NOT NULL,
  location TEXT NOT NULL,
  function TEXT NOT NULL,
  file TEXT NOT NULL,
  first_line INTEGER NOT NULL,
  last_line INTEGER NOT NULL,
  share REAL NOT NULL,
  share_low REAL NOT NULL,
  share_high REAL NOT NULL,
  samples INTEGER NOT NULL,
  PRIMARY KEY(profile, location)) WITHOUT ROWID;
CREATE INDEX loop_result_by_location ON loop_result(location, profile);
CREATE INDEX profile_by_uid ON profile(uid, id);
)sql";

// Version 3: the audit log of injections. No profile's end and no retention of profiles touches it.
constexpr char kVersion3[] = R"sql(
CREATE TABLE audit(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  profile INTEGER NOT NULL,
  uid INTEGER NOT NULL,
  unix_ns INTEGER NOT NULL,
  stream_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  item INTEGER NOT NULL,
  body BLOB NOT NULL,
  UNIQUE(stream_id, sequence, item));
CREATE INDEX audit_by_time ON audit(unix_ns);
CREATE INDEX audit_by_profile ON audit(profile, unix_ns);
)sql";

// Version 4: jobs of schedulers, each run once, and how many of each sequence were counted.
constexpr char kVersion4[] = R"sql(
CREATE TABLE hook_job(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  cluster TEXT NOT NULL,
  job TEXT NOT NULL,
  restart INTEGER NOT NULL,
  uid INTEGER NOT NULL,
  user TEXT NOT NULL,
  account TEXT NOT NULL,
  partition TEXT NOT NULL,
  number INTEGER NOT NULL,
  decision INTEGER NOT NULL,
  reason TEXT NOT NULL,
  profile INTEGER NOT NULL,
  wait_ns INTEGER NOT NULL,
  seen_ns INTEGER NOT NULL,
  ended_ns INTEGER NOT NULL,
  UNIQUE(cluster, job, restart));
CREATE INDEX hook_job_by_profile ON hook_job(profile) WHERE profile>0;
CREATE INDEX hook_job_by_time ON hook_job(seen_ns) WHERE profile>0;
CREATE TABLE hook_counter(name TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
)sql";

// Version 5: which nodes have begun and ended a run that is not over; of runs that are over, `ended_ns` says it. Runs of
// version 4 have no nodes: the first end ends them, as it did then.
constexpr char kVersion5[] = R"sql(
ALTER TABLE hook_job ADD COLUMN scheduler TEXT NOT NULL DEFAULT '';
CREATE TABLE hook_node(
  job INTEGER NOT NULL,
  node TEXT NOT NULL,
  ended_ns INTEGER NOT NULL,
  PRIMARY KEY(job, node)) WITHOUT ROWID;
CREATE INDEX hook_node_open ON hook_node(job) WHERE ended_ns=0;
)sql";

// Version 6: who brought an entry of the audit log, when, and how many bytes each sender has of each user's. `bytes` is at
// least what a row takes: rows of more than a quarter of a page may have pages of their own, and index pages are half empty
// where rows come in any order. `audit_use` is kept by triggers, so that it agrees with the rows whoever changes them.
constexpr char kVersion6[] = R"sql(
ALTER TABLE audit ADD COLUMN sender TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN stored_ns INTEGER NOT NULL DEFAULT 0;
UPDATE audit SET stored_ns=unix_ns;
ALTER TABLE audit ADD COLUMN bytes INTEGER AS (
  CASE WHEN length(body)<=1000 THEN length(body)*5/4 ELSE (length(body)/4000+1)*4096 END
  + 3*length(stream_id) + 3*length(sender) + 200) VIRTUAL;
CREATE INDEX audit_by_sender ON audit(uid, sender);
CREATE INDEX audit_by_age ON audit(stored_ns);
CREATE TABLE audit_use(
  uid INTEGER NOT NULL,
  sender TEXT NOT NULL,
  entries INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY(uid, sender)) WITHOUT ROWID;
INSERT INTO audit_use SELECT uid, sender, count(*), sum(bytes) FROM audit GROUP BY uid, sender;
CREATE TRIGGER audit_added AFTER INSERT ON audit BEGIN
  INSERT INTO audit_use VALUES(new.uid, new.sender, 1, new.bytes)
    ON CONFLICT(uid, sender) DO UPDATE SET entries=entries+1, bytes=bytes+new.bytes;
END;
CREATE TRIGGER audit_deleted AFTER DELETE ON audit BEGIN
  UPDATE audit_use SET entries=entries-1, bytes=bytes-old.bytes
    WHERE uid=old.uid AND sender=old.sender;
  DELETE FROM audit_use WHERE uid=old.uid AND sender=old.sender AND entries<=0;
END;
)sql";

// Version 7: whose a stream is. Those of version 6 are whose who brings the next window.
constexpr char kVersion7[] = R"sql(
CREATE TABLE stream_owner(stream_id TEXT PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID;
)sql";

// Version 8: in which order a sender began its streams, so that the first can be forgotten (a stream of which nothing was wanted yet has a
// sender and no owner); and who answers for the room of a profile
// (ProfileHolder: -1 are users whom the system does not know, -2 is the site), with what it takes found by the index alone.
constexpr char kVersion8[] = R"sql(
ALTER TABLE profile ADD COLUMN holder INTEGER NOT NULL DEFAULT 0;
UPDATE profile SET holder=uid;
UPDATE profile SET holder=-2 WHERE id IN (SELECT profile FROM hook_job WHERE profile>0);
CREATE INDEX profile_by_holder ON profile(holder, final, finished_ns);
DROP INDEX window_by_profile;
CREATE INDEX window_by_profile ON window(profile, id, bytes);
ALTER TABLE stream_owner ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
ALTER TABLE stream_owner ADD COLUMN sender TEXT NOT NULL DEFAULT '';
UPDATE stream_owner SET sender=owner;
CREATE INDEX stream_owner_by_number ON stream_owner(sender, number);
)sql";

// Version 9: whose windows, up to which row, are no more part of a profile, and what is still there of them. Their rows go a few at a time.
constexpr char kVersion9[] = R"sql(
CREATE TABLE replaced_window(
  profile INTEGER PRIMARY KEY,
  up_to INTEGER NOT NULL,
  bytes INTEGER NOT NULL);
)sql";

constexpr std::array<const char*, kSchemaVersion> kSteps = {kVersion1, kVersion2, kVersion3,
                                                            kVersion4, kVersion5, kVersion6,
                                                            kVersion7, kVersion8, kVersion9};

}  // namespace

absl::Status Migrate(Database& db) {
  ASSIGN_OR_RETURN(int64_t version, db.QueryInt("PRAGMA user_version"));
  if (version > kSchemaVersion || version < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the store has schema version ", version, ", this perfd knows versions up to ",
                     kSchemaVersion, ": start the newer perfd, or another --store-dir"));
  }
  for (; version < kSchemaVersion; ++version) {
    RETURN_IF_ERROR(db.Exec("BEGIN IMMEDIATE"));
    absl::Status step = db.Exec(kSteps[static_cast<size_t>(version)]);
    if (step.ok()) step = db.Exec(absl::StrCat("PRAGMA user_version=", version + 1));
    if (step.ok()) step = db.Exec("COMMIT");
    if (!step.ok()) {
      if (db.InTransaction()) (void)db.Exec("ROLLBACK");
      return step;
    }
  }
  return absl::OkStatus();
}

}  // namespace perfd::daemon
