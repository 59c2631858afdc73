-- How often each part of what processes remember was changed (db/generation.go).
-- +goose Up

ALTER TABLE counter ADD COLUMN catalog     BIGINT NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN annotations BIGINT NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN indexes     BIGINT NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN words       BIGINT NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN moves       BIGINT NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN silent      BIGINT NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN erasures    BIGINT NOT NULL DEFAULT 0;
