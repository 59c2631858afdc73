-- How often jobs were added, the outcome of a job by its key, and a row to lock for each kind with a limit (jobs/claim.go).
-- +expand
-- +goose Up

ALTER TABLE counter ADD COLUMN jobs BIGINT NOT NULL DEFAULT 0;
CREATE INDEX job_outcome ON job (kind, key) WHERE state >= 3 AND key <> '';
CREATE TABLE job_kind (kind TEXT COLLATE "C" PRIMARY KEY);
