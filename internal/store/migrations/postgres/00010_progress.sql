-- How often the states of walks and webhooks were changed (kv/watch.go).
-- +expand
-- +goose Up

ALTER TABLE counter ADD COLUMN progress BIGINT NOT NULL DEFAULT 0;
