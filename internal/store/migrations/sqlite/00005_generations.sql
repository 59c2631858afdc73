-- How often each part of what processes remember was changed (db/generation.go).
-- +goose Up

ALTER TABLE counter ADD COLUMN catalog     INTEGER NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN annotations INTEGER NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN indexes     INTEGER NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN words       INTEGER NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN moves       INTEGER NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN silent      INTEGER NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN erasures    INTEGER NOT NULL DEFAULT 0;
