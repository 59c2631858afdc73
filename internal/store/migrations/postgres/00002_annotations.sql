-- What people write on records.
-- +goose Up

-- A note, or with an empty text the mark that the record is handled. at is in Unix
-- nanoseconds. id is the record's, so that it is found without a look at names.
CREATE TABLE annotation (
  number BIGINT PRIMARY KEY DEFAULT next_number('annotation'),
  kind   BIGINT NOT NULL REFERENCES kind (number) DEFERRABLE INITIALLY IMMEDIATE,
  record BIGINT NOT NULL,
  id     TEXT COLLATE "C" NOT NULL,
  author TEXT COLLATE "C" NOT NULL,
  at     BIGINT NOT NULL,
  text   TEXT COLLATE "C" NOT NULL
);
CREATE INDEX annotation_record ON annotation (record);
CREATE UNIQUE INDEX annotation_handled ON annotation (record) WHERE text = '';

-- A small value under a name. A note is what somebody writes.
ALTER TABLE note RENAME TO kv;
