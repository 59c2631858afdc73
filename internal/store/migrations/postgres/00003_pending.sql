-- What saves leave to the indexes of terms and words.
-- +goose Up

-- What one save changes in the indexes (index/pending.go). Whoever asks the indexes reads
-- these rows beside them; the next change that is not left is written together with them.
CREATE TABLE pending (
  number BIGINT PRIMARY KEY DEFAULT next_number('pending'),
  body   BYTEA NOT NULL
);
