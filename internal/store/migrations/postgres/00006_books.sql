-- How often small values were changed of which processes keep copies in memory (kv/watch.go).
-- +goose Up

ALTER TABLE counter ADD COLUMN sessions    BIGINT NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN credentials BIGINT NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN watches     BIGINT NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN keys        BIGINT NOT NULL DEFAULT 0;
