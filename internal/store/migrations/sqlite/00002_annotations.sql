-- What people write on records.
-- +goose Up

-- A note, or with an empty text the mark that the record is handled. at is in Unix
-- nanoseconds. id is the record's, so that it is found without a look at names.
CREATE TABLE annotation (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  kind   INTEGER NOT NULL REFERENCES kind (number),
  record INTEGER NOT NULL,
  id     TEXT    NOT NULL,
  author TEXT    NOT NULL,
  at     INTEGER NOT NULL,
  text   TEXT    NOT NULL
) STRICT;
CREATE INDEX annotation_record ON annotation (record);
CREATE UNIQUE INDEX annotation_handled ON annotation (record) WHERE text = '';

-- A small value under a name. A note is what somebody writes.
ALTER TABLE note RENAME TO kv;
