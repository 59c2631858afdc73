-- The processes that share the database (nodes/nodes.go).
-- +goose Up

ALTER TABLE counter ADD COLUMN kinds    INTEGER NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN pages    INTEGER NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN position INTEGER NOT NULL DEFAULT 0;

-- A process. url is where the others reach it, settings what must be the same in all of them. seen is the position up to
-- which its memory is right, alive the time (Unix nanoseconds of the database) until which it may answer from memory.
CREATE TABLE node (
  id       TEXT    NOT NULL PRIMARY KEY,
  url      TEXT    NOT NULL,
  version  TEXT    NOT NULL,
  settings TEXT    NOT NULL,
  started  INTEGER NOT NULL,
  seen     INTEGER NOT NULL,
  alive    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
