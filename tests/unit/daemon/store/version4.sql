-- A store as version 4 left it: a job of a scheduler that is profiled and runs, and one that is over.
BEGIN;
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE profile(id INTEGER PRIMARY KEY AUTOINCREMENT, uid INTEGER NOT NULL, name TEXT NOT NULL,
  state INTEGER NOT NULL, final INTEGER NOT NULL, submitted_ns INTEGER NOT NULL, finished_ns INTEGER NOT NULL,
  status BLOB NOT NULL);
CREATE INDEX profile_by_final ON profile(final, finished_ns);
CREATE INDEX profile_by_uid ON profile(uid, id);
CREATE TABLE window(id INTEGER PRIMARY KEY AUTOINCREMENT, profile INTEGER NOT NULL, stream_id TEXT NOT NULL,
  sequence INTEGER NOT NULL, node TEXT NOT NULL, bytes INTEGER NOT NULL, body BLOB NOT NULL,
  UNIQUE(stream_id, sequence));
CREATE INDEX window_by_profile ON window(profile, id);
CREATE TABLE stream_range(stream_id TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
  PRIMARY KEY(stream_id, first)) WITHOUT ROWID;
CREATE TABLE aggregate(profile INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE report(profile INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE loop_result(profile INTEGER NOT NULL, location TEXT NOT NULL, function TEXT NOT NULL, file TEXT NOT NULL,
  first_line INTEGER NOT NULL, last_line INTEGER NOT NULL, share REAL NOT NULL, share_low REAL NOT NULL,
  share_high REAL NOT NULL, samples INTEGER NOT NULL, PRIMARY KEY(profile, location)) WITHOUT ROWID;
CREATE INDEX loop_result_by_location ON loop_result(location, profile);
CREATE TABLE audit(id INTEGER PRIMARY KEY AUTOINCREMENT, profile INTEGER NOT NULL, uid INTEGER NOT NULL,
  unix_ns INTEGER NOT NULL, stream_id TEXT NOT NULL, sequence INTEGER NOT NULL, item INTEGER NOT NULL, body BLOB NOT NULL,
  UNIQUE(stream_id, sequence, item));
CREATE INDEX audit_by_time ON audit(unix_ns);
CREATE INDEX audit_by_profile ON audit(profile, unix_ns);
CREATE TABLE hook_job(id INTEGER PRIMARY KEY AUTOINCREMENT, cluster TEXT NOT NULL, job TEXT NOT NULL,
  restart INTEGER NOT NULL, uid INTEGER NOT NULL, user TEXT NOT NULL, account TEXT NOT NULL, partition TEXT NOT NULL,
  number INTEGER NOT NULL, decision INTEGER NOT NULL, reason TEXT NOT NULL, profile INTEGER NOT NULL,
  wait_ns INTEGER NOT NULL, seen_ns INTEGER NOT NULL, ended_ns INTEGER NOT NULL, UNIQUE(cluster, job, restart));
CREATE INDEX hook_job_by_profile ON hook_job(profile) WHERE profile>0;
CREATE INDEX hook_job_by_time ON hook_job(seen_ns) WHERE profile>0;
CREATE TABLE hook_counter(name TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO profile VALUES(3, 1000, 'old', 2, 0, 5, 0, x'');
INSERT INTO hook_job VALUES(7, 'c', 'over', 2, 1000, 'alice', 'physics', 'debug', 41, 1, 'why', 0, 60, 200, 300);
INSERT INTO hook_job VALUES(8, 'c', 'runs', 0, 1000, 'alice', 'physics', 'batch', 0, 0, 'asked for', 3, 60, 250, 0);
INSERT INTO hook_counter VALUES('partition=debug', 41);
PRAGMA user_version=4;
COMMIT;
