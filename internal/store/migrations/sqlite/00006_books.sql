-- How often small values were changed of which processes keep copies in memory (kv/watch.go).
-- +goose Up

ALTER TABLE counter ADD COLUMN sessions    INTEGER NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN credentials INTEGER NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN watches     INTEGER NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN keys        INTEGER NOT NULL DEFAULT 0;
