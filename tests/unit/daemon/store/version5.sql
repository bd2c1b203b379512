-- A store as version 5 left it: two entries of the audit log, of one user each, without who brought them.
BEGIN;
CREATE TABLE aggregate(profile INTEGER PRIMARY KEY, body BLOB NOT NULL);
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
INSERT INTO "audit" VALUES(1,3,1000,10,'old-stream',1,0,X'080A1208702D3030303030331A10616C696365202875696420313030302922056E6F646531282A3A07696E7374616C6C62026F6B');
INSERT INTO "audit" VALUES(2,2,1001,20,'old-stream',2,0,X'08141208702D3030303030321A0E626F62202875696420313030312922056E6F646531282A3A07696E7374616C6C62026F6B');
CREATE TABLE hook_counter(name TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
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
  ended_ns INTEGER NOT NULL, scheduler TEXT NOT NULL DEFAULT '',
  UNIQUE(cluster, job, restart));
CREATE TABLE hook_node(
  job INTEGER NOT NULL,
  node TEXT NOT NULL,
  ended_ns INTEGER NOT NULL,
  PRIMARY KEY(job, node)) WITHOUT ROWID;
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
INSERT INTO "profile" VALUES(3,1000,'old',2,0,5,0,X'');
CREATE TABLE report(profile INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE stream_range(
  stream_id TEXT NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  PRIMARY KEY(stream_id, first)) WITHOUT ROWID;
CREATE TABLE window(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  profile INTEGER NOT NULL,
  stream_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  node TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  body BLOB NOT NULL,
  UNIQUE(stream_id, sequence));
CREATE INDEX profile_by_final ON profile(final, finished_ns);
CREATE INDEX window_by_profile ON window(profile, id);
CREATE INDEX loop_result_by_location ON loop_result(location, profile);
CREATE INDEX profile_by_uid ON profile(uid, id);
CREATE INDEX audit_by_time ON audit(unix_ns);
CREATE INDEX audit_by_profile ON audit(profile, unix_ns);
CREATE INDEX hook_job_by_profile ON hook_job(profile) WHERE profile>0;
CREATE INDEX hook_job_by_time ON hook_job(seen_ns) WHERE profile>0;
CREATE INDEX hook_node_open ON hook_node(job) WHERE ended_ns=0;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('profile',3);
INSERT INTO "sqlite_sequence" VALUES('audit',2);
PRAGMA user_version=5;
COMMIT;
