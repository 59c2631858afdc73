-- Promised work, and small named values for whoever has something to remember.
-- +goose Up

-- A job (job.go at the root). Times are Unix nanoseconds, 0: none. state: 1
-- waiting, 2 running, from 3 on archived. again counts runs that did not count
-- as attempts. Numbers are never used twice.
CREATE TABLE job (
  number     INTEGER PRIMARY KEY AUTOINCREMENT,
  kind       TEXT    NOT NULL,
  key        TEXT    NOT NULL,
  payload    BLOB    NOT NULL,
  lane       INTEGER NOT NULL,
  once       INTEGER NOT NULL,
  attempts   INTEGER NOT NULL,
  weight     INTEGER NOT NULL,
  run_after  INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  state      INTEGER NOT NULL,
  created    INTEGER NOT NULL,
  attempt    INTEGER NOT NULL DEFAULT 0,
  again      INTEGER NOT NULL DEFAULT 0,
  fence      INTEGER NOT NULL DEFAULT 0,
  worker     TEXT    NOT NULL DEFAULT '',
  error      TEXT    NOT NULL DEFAULT '',
  started    INTEGER NOT NULL DEFAULT 0,
  ended      INTEGER NOT NULL DEFAULT 0,
  lease_end  INTEGER NOT NULL DEFAULT 0,
  stop       INTEGER NOT NULL DEFAULT 0,
  done       INTEGER NOT NULL DEFAULT 0,
  total      INTEGER NOT NULL DEFAULT 0,
  note       TEXT    NOT NULL DEFAULT '',
  mark       BLOB    NOT NULL DEFAULT x''
) STRICT;
CREATE UNIQUE INDEX job_live ON job (kind, key) WHERE state <= 2 AND key <> '';
CREATE INDEX job_waiting ON job (kind, lane, run_after, number) WHERE state = 1;
CREATE INDEX job_expires ON job (expires_at) WHERE state = 1 AND expires_at > 0;
CREATE INDEX job_running ON job (kind, lease_end) WHERE state = 2;
CREATE INDEX job_ended ON job (state, ended, number) WHERE state >= 3;

-- When a periodic kind was last planned.
CREATE TABLE job_plan (
  kind TEXT    NOT NULL PRIMARY KEY,
  last INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A small value under a name: where a walk stands, what a receiver has.
CREATE TABLE note (
  name  TEXT NOT NULL PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
