-- The processes that share the database (nodes/nodes.go).
-- +goose Up

ALTER TABLE counter ADD COLUMN kinds    BIGINT NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN pages    BIGINT NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN position BIGINT NOT NULL DEFAULT 0;

-- A process. url is where the others reach it, settings what must be the same in all of them. seen is the position up to
-- which its memory is right, alive the time (Unix nanoseconds of the database) until which it may answer from memory.
CREATE TABLE node (
  id       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  url      TEXT COLLATE "C" NOT NULL,
  version  TEXT COLLATE "C" NOT NULL,
  settings TEXT COLLATE "C" NOT NULL,
  started  BIGINT NOT NULL,
  seen     BIGINT NOT NULL,
  alive    BIGINT NOT NULL
);
