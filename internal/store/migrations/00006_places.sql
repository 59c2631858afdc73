-- Where records stand in their lists, and by which values they are found.
-- +goose Up

-- A record's place (place.go): its position times 2, plus 1 when a page has
-- shown it there. It is the same in all of a record's rows. NULL: not yet.
ALTER TABLE held ADD COLUMN place INTEGER;

-- Records by their position. kind is negative for those that are held in no
-- shape now: their positions stay theirs. The order falls, as walks save.
CREATE TABLE place (
  kind   INTEGER NOT NULL,
  at     INTEGER NOT NULL,
  record INTEGER NOT NULL,
  PRIMARY KEY (kind, at DESC)
) STRICT, WITHOUT ROWID;

-- Exact terms: a row for each present record in each shape, numbered by where it
-- stands (its position and the shape's number, negative), of hashes of shape,
-- field and value. What is taken out is overwritten.
CREATE VIRTUAL TABLE terms USING fts5(term, content='', detail=none, columnsize=0, tokenize='ascii');
INSERT INTO terms (terms, rank) VALUES ('secure-delete', 1);

-- The earliest and the latest time (Unix seconds) a field of a shape ever had
-- more than an hour from where the record stands; and, under "~" and the field's
-- name, the least and the largest difference in seconds of the other times.
CREATE TABLE span (
  shape INTEGER NOT NULL,
  field TEXT    NOT NULL,
  least INTEGER NOT NULL,
  most  INTEGER NOT NULL,
  PRIMARY KEY (shape, field)
) STRICT, WITHOUT ROWID;

-- Which fields terms were made of; NULL: places and terms are to be made.
ALTER TABLE kind ADD COLUMN terms TEXT;
