-- The records of the last writes, for other processes (nodes/others.go).
-- +expand
-- +goose Up

CREATE TABLE written (
  kind       INTEGER NOT NULL,
  place      INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  id         BLOB NOT NULL,
  PRIMARY KEY (kind, place)
) WITHOUT ROWID;
