-- A store as version 1 left it: one unfinished profile with one window of a stream that has delivered 1..17.
BEGIN;
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE profile(id INTEGER PRIMARY KEY AUTOINCREMENT, uid INTEGER NOT NULL, name TEXT NOT NULL,
  state INTEGER NOT NULL, final INTEGER NOT NULL, submitted_ns INTEGER NOT NULL, finished_ns INTEGER NOT NULL,
  status BLOB NOT NULL);
CREATE INDEX profile_by_final ON profile(final, finished_ns);
CREATE TABLE window(id INTEGER PRIMARY KEY AUTOINCREMENT, profile INTEGER NOT NULL, stream_id TEXT NOT NULL,
  sequence INTEGER NOT NULL, node TEXT NOT NULL, bytes INTEGER NOT NULL, body BLOB NOT NULL,
  UNIQUE(stream_id, sequence));
CREATE INDEX window_by_profile ON window(profile, id);
CREATE TABLE stream_range(stream_id TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
  PRIMARY KEY(stream_id, first)) WITHOUT ROWID;
CREATE TABLE aggregate(profile INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE report(profile INTEGER PRIMARY KEY, body BLOB NOT NULL);
INSERT INTO profile VALUES(3, 1000, 'old', 2, 0, 5, 0, x'');
INSERT INTO window VALUES(9, 3, 'old-stream', 17, 'node', 10, CAST('old window' AS BLOB));
INSERT INTO stream_range VALUES('old-stream', 1, 17);
PRAGMA user_version=1;
COMMIT;
