-- When pages were read, and what had to go to keep store.limit.
-- +goose Up

-- Unix seconds of the last noted read; a page is also taken to be read when it
-- is saved (at). 0: none was noted.
ALTER TABLE page ADD COLUMN read INTEGER NOT NULL DEFAULT 0;

-- What the limit has made go so far, and when last (Unix nanoseconds).
ALTER TABLE counter ADD COLUMN evicted_pages INTEGER NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN evicted_versions INTEGER NOT NULL DEFAULT 0;
ALTER TABLE counter ADD COLUMN evicted_at INTEGER NOT NULL DEFAULT 0;
