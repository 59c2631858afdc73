-- What is to be erased, and the receipts of what was.
-- +goose Up

-- One errand of erasing. It holds no text: hash is a keyed hash of the number
-- that was asked for. done is 0 until nothing of it is left in any file.
CREATE TABLE erasure (
  number   INTEGER PRIMARY KEY AUTOINCREMENT,
  source   INTEGER NOT NULL,
  cause    INTEGER NOT NULL,
  hash     BLOB    NOT NULL,
  begun    INTEGER NOT NULL,
  done     INTEGER NOT NULL DEFAULT 0,
  records  INTEGER NOT NULL DEFAULT 0,
  versions INTEGER NOT NULL DEFAULT 0,
  pages    INTEGER NOT NULL DEFAULT 0,
  files    INTEGER NOT NULL DEFAULT 0
) STRICT;

-- A record that waits to be erased, written with its cause. erasure is 0 until
-- somebody takes it on. bound and fields are those of a redaction: versions
-- before bound in which one of the fields (a name a line) is not empty. state:
-- 0 it is not stored again, 1 its texts are out of every row, 2 nothing was
-- done.
CREATE TABLE erasing (
  number  INTEGER PRIMARY KEY AUTOINCREMENT,
  erasure INTEGER NOT NULL DEFAULT 0,
  source  INTEGER NOT NULL,
  kind    INTEGER NOT NULL,
  record  INTEGER NOT NULL,
  cause   INTEGER NOT NULL,
  bound   INTEGER NOT NULL DEFAULT 0,
  fields  TEXT    NOT NULL DEFAULT '',
  at      INTEGER NOT NULL,
  state   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX erasing_state ON erasing (state, erasure);

-- Dictionaries that held what was erased: what they pack is packed anew.
CREATE TABLE retired (dictionary INTEGER PRIMARY KEY) STRICT;

-- 1: a person was erased, the record is not stored again; 2: it was older than
-- the retention of its kind.
ALTER TABLE name ADD COLUMN erased INTEGER NOT NULL DEFAULT 0;

-- How many names have erased = 1 or 2, and the key of the hashes in erasure.
ALTER TABLE counter ADD COLUMN erased INTEGER NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN seal BLOB NOT NULL DEFAULT x'';
